-- Verdicts of the claim ledger: [9]{.verdict} is the word for claim 9, and ::: {.when claim=9
-- verdict="holds"} is kept only when the verdict on the data shown is this one. verdict="otherwise"
-- stands for all that the file's other blocks on the claim do not name.

local common = require 'common'
local ledger = require 'ledger'
local numbers = require 'numbers'

local verdicts = {}

local known = { otherwise = true }
for _, verdict in ipairs(ledger.verdicts) do
  known[verdict] = true
end

-- The word for a claim, with the label of the run that it rests on.
function verdicts.word(claim)
  local content = pandoc.List { pandoc.Str((claim.verdict:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(claim.source_run)
  local title = type(claim.why) == 'string' and claim.why or nil
  local classes = { 'verdict', 'verdict-' .. claim.verdict:gsub(' ', '-') }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = title }))
end

local function word(span)
  if not span.classes:includes('verdict') then
    return nil
  end
  local id = pandoc.utils.stringify(span.content)
  local claim = ledger.claim(id, '[' .. id .. ']{.verdict')
  return claim and verdicts.word(claim)
end

-- "holds, changed" -> { holds = true, changed = true }
local function names(element, needle)
  local set = {}
  for name in (element.attributes.verdict or ''):gmatch('[^,]+') do
    name = name:gsub('^%s+', ''):gsub('%s+$', '')
    if not known[name] then
      common.fail(('unknown verdict "%s"'):format(name), needle)
    end
    set[name] = true
  end
  if not next(set) then
    common.fail('.when without verdict=', needle)
  end
  return set
end

local function needle_of(element)
  return 'claim=' .. (element.attributes.claim or '')
end

-- Calls visit(element, claim id, set of names) for every .when, block or inline.
local function each_when(doc, visit)
  local function look(element)
    if element.classes:includes('when') then
      return visit(element, element.attributes.claim or '', names(element, needle_of(element)))
    end
  end
  return doc:walk { Div = look, Span = look }
end

-- claim id -> all verdicts that some block of this file names
local function named_in(doc)
  local named = {}
  each_when(doc, function(_, id, set)
    named[id] = named[id] or {}
    for name in pairs(set) do
      named[id][name] = true
    end
  end)
  return named
end

function verdicts.apply(doc)
  doc = doc:walk { Span = word }
  local named = named_in(doc)
  return each_when(doc, function(element, id, set)
    local claim = ledger.claim(id, needle_of(element))
    if claim and (set[claim.verdict] or (set.otherwise and not named[id][claim.verdict])) then
      return element.content
    end
    return {}
  end)
end

return verdicts
