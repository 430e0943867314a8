-- Checks a request's mode by the `billed` field of its record (1 live, 0 test; '' wants either). A tombstone without
-- the field counts as live.
local function is_of_mode(billed, wanted)
  return wanted == '' or (billed or '1') == wanted
end

