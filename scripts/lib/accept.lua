-- What a client would rather have, by its Accept header (RFC 9110 section 12.5.1).
local accept = {}

---The quality from 0 to 1 that a header gives a media type; the most specific range counts.
---@param header string? value of Accept; nil accepts everything
---@param media string such as "text/html"
---@return number
function accept.quality(header, media)
  if header == nil then
    return 1
  end
  local best, quality = 0, 0
  for range in header:lower():gmatch("[^,]+") do
    local name = range:match("^%s*([^;%s]+)")
    local specific = name == media and 3 or name == media:match("^[^/]+") .. "/*" and 2 or name == "*/*" and 1 or 0
    if specific > best then
      best, quality = specific, tonumber(range:match(";%s*q%s*=%s*([%d.]+)")) or 1
    end
  end
  return quality
end

---Tells whether a client would rather have one media type than another.
---@param header string?
---@param media string
---@param other string
---@return boolean
function accept.prefers(header, media, other)
  return accept.quality(header, media) > accept.quality(header, other)
end

return accept
