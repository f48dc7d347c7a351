-- Pass 2: one chapter or one file of slides with everything bound: code, diffs, figures, numbers,
-- verdicts, references.
-- pandoc -f markdown -t json -M form=chapter -M labels=FILE --lua-filter=weave.lua CHAPTER
-- The JSON goes to form.lua, which makes pages, the one-file book, the EPUB and the deck of it.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local numbers = require 'numbers'
local figures = require 'figures'

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
  require('units').apply,
  require('references').apply,
  common.stop_if_failed,
  numbers.margin,
  function(doc)
    if common.form == 'slides' then
      return require('slides').apply(doc)
    end
    return common.searchfile and require('search').apply(doc)
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
