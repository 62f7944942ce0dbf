-- The upstream gets a path that nobody can guess: prefix, n random letters and digits, suffix.
local M = {
  stage = "transform",
  config = {
    prefix = { "string", required = true, pattern = "^/" },
    n = { "integer", default = 16, min = 1, max = 64 },
    suffix = { "string", default = "" },
  },
}

function M.on_request(req, ctx, conf)
  local random = gw.crypto.hex_encode(gw.crypto.random(conf.n)):sub(1, conf.n)
  req.path = conf.prefix .. random .. conf.suffix
end

return M
