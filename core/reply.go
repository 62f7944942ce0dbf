package core

// Reply is a decision to answer the client without asking an upstream. From status 400 a Message becomes the gateway's standard
// error JSON; otherwise Body is sent as it is.
type Reply struct {
	Status  int
	Header  Header
	Body    []byte
	Message string // used instead of Body when IsError
	IsError bool
	Source  Source
}

// Answered is the cause of an Error by which a filter ends the request in the middle of its body: not a breakage, but an answer.
type Answered struct{ Reply *Reply }

func (a *Answered) Error() string { return "a filter answered before the body's end" }

// ErrorReply answers with the standard error JSON.
func ErrorReply(source Source, status int, message string) *Reply {
	return &Reply{Status: status, Message: message, IsError: true, Source: source}
}
