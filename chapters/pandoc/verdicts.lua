-- Verdicts of the claim ledger: [9]{.verdict} is the word for claim 9, and ::: {.when claim=9
-- verdict="holds"} is kept only when the verdict on the data shown is this one. verdict="otherwise"
-- stands for all that the file's other blocks on the claim do not name.

local common = require 'common'
local json = require 'json'
local numbers = require 'numbers'

local verdicts = {}
local claims

local known = {
  ['holds'] = true,
  ['changed'] = true,
  ['reversed'] = true,
  ['no difference seen'] = true,
  ['not measured here'] = true,
}

local function load()
  if claims ~= nil then
    return claims
  end
  local path = common.build .. '/data/claims.json'
  local text = common.depend(path)
  local decoded, reason, line = json.decode(text or '')
  if not text then
    common.fail_at(path, 'not there; claims are judged before the book is made')
  elseif not decoded then
    common.fail_at(path .. ':' .. line, reason)
  end
  claims = {}
  for _, claim in ipairs(decoded or {}) do
    claims[tostring(claim.id):gsub('%.0$', '')] = claim
  end
  return claims
end

local function claim_of(id, needle)
  local claim = load()[id]
  if not claim then
    common.fail(('unknown claim %s (not in %s/data/claims.json)'):format(id, common.build), needle)
  elseif not known[claim.verdict] then
    local message = 'claim %s: unknown verdict "%s" in claims.json'
    common.fail(message:format(id, tostring(claim.verdict)), needle)
  end
  return claim
end

local function word(span)
  if not span.classes:includes('verdict') then
    return nil
  end
  local id = pandoc.utils.stringify(span.content)
  local claim = claim_of(id, '[' .. id .. ']{.verdict')
  if not claim then
    return nil
  end
  local content = pandoc.List { pandoc.Str((claim.verdict:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(claim.source_run)
  local title = type(claim.why) == 'string' and claim.why or nil
  local classes = { 'verdict', 'verdict-' .. claim.verdict:gsub(' ', '-') }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = title }))
end

-- "holds, changed" -> { holds = true, changed = true }
local function names(element, needle)
  local set = {}
  for name in (element.attributes.verdict or ''):gmatch('[^,]+') do
    name = name:gsub('^%s+', ''):gsub('%s+$', '')
    if not known[name] and name ~= 'otherwise' then
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
    local claim = claim_of(id, needle_of(element))
    if claim and (set[claim.verdict] or (set.otherwise and not named[id][claim.verdict])) then
      return element.content
    end
    return {}
  end)
end

return verdicts
