-- Pass 2: one chapter or one file of slides with everything bound: code, diffs, figures, numbers,
-- verdicts, references.
-- The JSON goes to form.lua, which makes pages, the one-file book, the EPUB and the deck of it.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local numbers = require 'numbers'
local figures = require 'figures'
local ledger = require 'ledger'
local code = require 'code'
local player = require 'player'
local machine = require 'machine'

-- In this order: what is hidden by a verdict binds nothing; captions are drawn after what they
-- contain.
local steps = {
  player.gather,
  machine.gather,
  figures.gather,
  require('unmeasured').apply,
  ledger.choose,
  require('findings').apply,
  code.bind,
  require('boxes').apply,
  require('then').apply,
  require('machines').apply,
  require('edition').apply,
  require('parts').apply,
  require('calls').apply,
  require('sources').apply,
  ledger.apply,
  numbers.apply,
  require('references').apply,
  common.stop_if_failed,
  numbers.margin,
  require('search').apply,
  figures.draw,
  player.draw,
  machine.draw,
  code.draw,
}

function Pandoc(doc)
  common.start(doc)
  for _, step in ipairs(steps) do doc = step(doc) or doc end
  common.finish()
  return doc
end
