-- The mode of a request, by whether its record says that it is billed (1 live, 0 test; '' wants either). A record
-- without it was put back from an answer that an earlier version stored: those are live.
local function is_of_mode(billed, wanted)
  return wanted == '' or (billed or '1') == wanted
end

