-- Pass 2: one chapter or one file of slides with everything bound: code, diffs, figures, numbers,
-- verdicts, references.
-- pandoc -f markdown -t json -M form=chapter -M weave=FOLDER --lua-filter=weave.lua CHAPTER
-- The JSON goes to form.lua, which makes pages, the one-file book, the EPUB and the deck of it.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local numbers = require 'numbers'
local figures = require 'figures'

-- The minutes of a slide become the pacing of the speaker view, in seconds.
local function pace(doc)
  local is_slide = false
  for _, block in ipairs(doc.blocks) do
    if block.t == 'Header' and block.level <= 2 then
      local seconds = (tonumber(block.attributes.minutes) or 0) * 60
      block.attributes['data-timing'] = ('%.0f'):format(seconds)
      is_slide = true
    end
  end
  if not is_slide then
    common.fail('no slide in it')
  end
  return doc
end

-- In this order: what is hidden by a verdict binds nothing; captions are drawn after what they
-- contain.
local steps = {
  figures.gather,
  require('verdicts').apply,
  require('regions').apply,
  require('diffs').apply,
  require('boxes').apply,
  require('then').apply,
  require('claims').apply,
  numbers.apply,
  require('references').apply,
  common.stop_if_failed,
  numbers.margin,
  function(doc)
    return common.form == 'slides' and pace(doc) or common.searchfile and require('search').apply(doc)
  end,
  figures.draw,
  require('listings').apply,
}

function Pandoc(doc)
  common.start(doc)
  for _, step in ipairs(steps) do
    doc = step(doc) or doc
  end
  common.finish()
  return doc
end
