// Functions of this package may be written elsewhere: nanotime is the runtime's. The compiler takes their bare declarations where there is a
// file of this kind, on every architecture.
