-- Slides: minutes become the pacing of the speaker view (data-timing, seconds); a heading without
-- them, without tracks, id or notes is refused.

local common = require 'common'

local slides = {}

local function check(header, has_notes)
  local title = pandoc.utils.stringify(header)
  local function need(condition, what)
    if not condition then
      common.fail(('slide "%s" has no %s'):format(title, what), title)
    end
  end
  need(header.identifier ~= '', 'id')
  need(tonumber(header.attributes.minutes), 'minutes')
  need(header.attributes.track, 'track')
  need(has_notes, 'notes')
end

local function is_notes(block)
  return block.t == 'Div' and block.classes:includes('notes')
end

function slides.apply(doc)
  local current, has_notes
  for _, block in ipairs(doc.blocks) do
    if block.t == 'Header' and block.level <= 2 then
      if current then
        check(current, has_notes)
      end
      current, has_notes = block, false
      local seconds = (tonumber(block.attributes.minutes) or 0) * 60
      block.attributes['data-timing'] = ('%.0f'):format(seconds)
    elseif is_notes(block) then
      has_notes = true
    end
  end
  if current then
    check(current, has_notes)
  else
    common.fail('no slide in it')
  end
  return doc
end

return slides
