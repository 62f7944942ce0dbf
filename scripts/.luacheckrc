std = "lua51"
max_line_length = 130
read_globals = { "gw" }
not_globals = { "io", "debug", "package", "dofile", "load", "loadfile", "loadstring", "setfenv", "getfenv", "module", "newproxy", "collectgarbage" }
unused_args = false
files["**/*_test.lua"] = { read_globals = { "test", "t" } }
exclude_files = { "types" }
