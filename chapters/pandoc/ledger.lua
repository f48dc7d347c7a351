-- The claim ledger as the exporter has judged it: build/data/claims.json.

local common = require 'common'
local json = require 'json'

local ledger = {}
local list, by_id

ledger.verdicts = pandoc.List {
  'holds', 'changed', 'reversed', 'no difference seen', 'not measured here',
}
-- A claim that no rule decides stands as its kind says.
ledger.standings = ledger.verdicts .. { 'another system', 'historical', 'no rule' }

-- All claims in order, and the same by id (a string). Both are empty when there is no ledger.
function ledger.load()
  if list then
    return list, by_id
  end
  list, by_id = pandoc.List {}, {}
  local path = common.build .. '/data/claims.json'
  local text = common.depend(path)
  local decoded, reason, line = json.decode(text or '')
  if not text then
    common.fail_at(path, 'not there; claims are judged before the book is made')
  elseif not decoded then
    common.fail_at(path .. ':' .. line, reason)
  end
  for _, claim in ipairs(decoded or {}) do
    claim.id = tostring(claim.id):gsub('%.0$', '')
    list:insert(claim)
    by_id[claim.id] = claim
  end
  return list, by_id
end

-- One claim, or nil and a mistake; `needle` is what to look for in the source.
function ledger.claim(id, needle)
  local _, known = ledger.load()
  local claim = known[id]
  if not claim then
    local message = 'unknown claim %s (not in %s/data/claims.json)'
    common.fail(message:format(id, common.build), needle)
  elseif not ledger.verdicts:includes(claim.verdict) then
    local message = 'claim %s: unknown verdict "%s" in claims.json'
    common.fail(message:format(id, tostring(claim.verdict)), needle)
  end
  return claim
end

return ledger
