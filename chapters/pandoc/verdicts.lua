-- The claim ledger as the exporter has judged it (build/data/claims.json). [9]{.verdict} is the word
-- for claim 9, and ::: {.when claim=9 verdict="holds"} is kept only when the verdict on the data
-- shown is this one. verdict="otherwise" stands for all that the file's other blocks on the claim do
-- not name.

local common = require 'common'
local numbers = require 'numbers'

local verdicts = {}

verdicts.words = pandoc.List {
  'holds', 'changed', 'reversed', 'no difference seen', 'not judged', 'not measured here',
}

-- All claims in order; their ids are texts.
function verdicts.claims()
  if not verdicts.list then
    verdicts.list = pandoc.List(common.data 'claims')
    for _, claim in ipairs(verdicts.list) do
      claim.id = tostring(claim.id)
    end
  end
  return verdicts.list
end

-- One claim, or nil and a mistake; `needle` is what to look for in the source.
local function claim_of(id, needle)
  local claim = verdicts.claims():find_if(function(claim) return claim.id == id end)
  if not claim then
    common.fail(('unknown claim %s (not in %s/data/claims.json)'):format(id, common.build), needle)
  elseif not verdicts.words:includes(claim.verdict) then
    common.fail(('claim %s: unknown verdict "%s" in claims.json'):format(id, claim.verdict), needle)
  end
  return claim
end

-- The word for a claim, with the label of the run that it rests on.
function verdicts.word(claim)
  local content = pandoc.List { pandoc.Str((claim.verdict:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(claim.source_run)
  local classes = { 'verdict', 'verdict-' .. claim.verdict:gsub(' ', '-') }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = claim.why }))
end

local function word(span)
  if span.classes:includes('verdict') then
    local id = pandoc.utils.stringify(span.content)
    local claim = claim_of(id, '[' .. id .. ']{.verdict')
    return claim and verdicts.word(claim)
  end
end

-- Calls visit(element, claim id, set of verdicts) for every .when, block or inline.
local function each_when(doc, visit)
  local function look(element)
    if not element.classes:includes('when') then
      return nil
    end
    local id, set = element.attributes.claim or '', {}
    for _, name in ipairs(common.split(element.attributes.verdict, '[^,]+')) do
      if name ~= 'otherwise' and not verdicts.words:includes(name) then
        common.fail(('unknown verdict "%s"'):format(name), 'claim=' .. id)
      end
      set[name] = true
    end
    if not next(set) then
      common.fail('.when without verdict=', 'claim=' .. id)
    end
    return visit(element, id, set)
  end
  return doc:walk { Div = look, Span = look }
end

function verdicts.apply(doc)
  local named = {} -- claim id -> all verdicts that some block of this file names
  each_when(doc, function(_, id, set)
    named[id] = named[id] or {}
    for name in pairs(set) do
      named[id][name] = true
    end
  end)
  return each_when(doc:walk { Span = word }, function(element, id, set)
    local claim = claim_of(id, 'claim=' .. id)
    if claim and (set[claim.verdict] or (set.otherwise and not named[id][claim.verdict])) then
      return element.content
    end
    return {}
  end)
end

return verdicts
