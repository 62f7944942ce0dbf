-- Ends an upload that grows too long while it streams: 413 for the client, a cut for the upstream. Nothing is held in memory.
local M = {
  stage = "transform",
  leaves_bodies = true, -- so that the upstream is told how long they are
  config = { most = { "size", required = true } },
}

function M.on_request_chunk(chunk, ctx, conf)
  ctx.uploaded = (ctx.uploaded or 0) + #chunk
  if ctx.uploaded > conf.most then
    return gw.respond(413, "the upload is too large")
  end
end

return M
