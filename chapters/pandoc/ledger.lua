-- The ledgers of claims as the exporter has judged them (build/data/claims.json, since.json), in the text, never
-- pasted: the word for a claim, text for a verdict, tables and counts (README.md).

local common = require 'common'
local numbers = require 'numbers'

local ledger = {}

local words = pandoc.List {
  'holds', 'in the model: holds', 'by a test: holds', 'faster now', 'changed', 'reversed', 'never so',
  'in the model: fails', 'by a test: fails', 'no difference seen', 'not decided', 'near the line',
  'depends on the processor', 'not judged', 'failed', 'not measured here',
}
local undecided = pandoc.List { 'not judged', 'failed', 'not measured here' }
-- A claim that no rule decides stands as its kind says.
local standings = words .. { 'another system', 'historical', 'no rule' }
local plain = numbers.plain

-- All claims in order.
local function claims() return pandoc.List(common.data 'claims') end

-- All rows of the ledger since 2003 (build/data/since.json): claims with their sources, whose numbers begin at 1000.
local function later() return pandoc.List(common.data 'since' or {}) end

-- ---- verdicts in the text -----------------------------------------------------------------------

-- One claim, or nil and a mistake; `needle` is what to look for in the source.
local function claim_of(id, needle)
  local claim = (claims() .. later()):find_if(function(claim) return tostring(claim.id) == id end)
  if not claim then
    common.fail(needle, 'unknown claim %s (not in %s/data/claims.json, nor in since.json)', id, common.build)
  elseif not words:includes(claim.verdict) then
    common.fail(needle, 'claim %s: unknown verdict "%s" in claims.json', id, claim.verdict)
  end
  return claim
end

-- What the run alone says for which the text is written, where a further session makes the word another one: else "".
local function reference_alone(claim)
  for _, text in ipairs(claim.each_session or {}) do
    local word = text:match ', session reference: ([^;]+)'
    if word and word ~= claim.verdict and word ~= 'not measured here' then return word end
  end
  return ''
end

-- The word for a claim, with the label of the run that it rests on. A slide has no room for more.
local function verdict(claim)
  local content = pandoc.List { pandoc.Str((claim.verdict:gsub(' ', '\u{a0}'))) }
  content[#content + 1] = numbers.ref_label(claim.source_run)
  local alone = common.form ~= 'slides' and reference_alone(claim) or ''
  if alone ~= '' then
    local text = (' (the reference run alone: %s)'):format(alone)
    content[#content + 1] = pandoc.Span({ pandoc.Str(text) }, pandoc.Attr('', { 'alone' }))
  end
  local classes = { 'verdict', 'verdict-' .. claim.verdict:gsub('[: ]+', '-') }
  return pandoc.Span(content, pandoc.Attr('', classes, { title = claim.why }))
end

local function bound_verdict(span)
  local id = pandoc.utils.stringify(span.content)
  local claim = claim_of(id, '[' .. id .. ']{.verdict')
  return claim and verdict(claim)
end

-- Calls visit(element, claim id, set of verdicts) for every .when, block or inline.
local function each_when(doc, visit)
  local look = common.by_class {
    when = function(element)
      local id, set = element.attributes.claim or '', {}
      for _, name in ipairs(common.split(element.attributes.verdict, '[^,]+')) do
        if name ~= 'otherwise' and not words:includes(name) then
          common.fail('claim=' .. id, 'unknown verdict "%s"', name)
        end
        set[name] = true
      end
      if not next(set) then common.fail('claim=' .. id, '.when without verdict=') end
      return visit(element, id, set)
    end,
  }
  return doc:walk { Div = look, Span = look }
end

-- Before all others: what is hidden binds nothing.
function ledger.choose(doc)
  local named = {} -- claim id -> all verdicts that some block of this file names
  each_when(doc, function(_, id, set)
    named[id] = named[id] or {}
    for name in pairs(set) do named[id][name] = true end
  end)
  for id, set in pairs(named) do
    local missing = words:filter(function(name) return not set[name] end)
    if #missing > 0 and not set.otherwise then -- a reader's machine may give any of them
      common.fail('claim=' .. id, 'claim %s: no .when for %s (or "otherwise")', id, table.concat(missing, ', '))
    end
  end
  doc = doc:walk { Span = common.by_class { verdict = bound_verdict } }
  return each_when(doc, function(element, id, set)
    local claim = claim_of(id, 'claim=' .. id)
    if claim and (set[claim.verdict] or (set.otherwise and not named[id][claim.verdict])) then
      return element.content
    end
    return {}
  end)
end

-- ---- tables of claims ---------------------------------------------------------------------------

local function measured(claim)
  return claim.experiment ~= '' and not undecided:includes(claim.verdict)
end

-- What [..]{.count} may name beside a standing.
local groups = {
  all = function() return true end,
  judged = function(claim) return words:includes(claim.standing) end,
  near = function(claim) return claim.near and measured(claim) end,
  reference = function(claim) return claim.source_run == 'reference' and measured(claim) end,
}
for _, standing in ipairs(standings) do
  groups[standing] = function(claim) return claim.standing == standing end
end

-- Attribute -> the field of a claim that must be one of its words.
local fields = { source = 'source', kind = 'kind', standing = 'standing', only = 'id' }

local function chosen(attributes)
  local found = attributes.near and claims():filter(groups.near) or claims()
  for name, field in pairs(fields) do
    local wanted = common.split(attributes[name], name == 'standing' and '[^,]+' or '%S+')
    -- A name that no claim has is a slip, and would leave claims out in silence.
    for _, value in ipairs(wanted) do
      if not (name == 'standing' and standings:includes(value))
        and not claims():find_if(function(claim) return tostring(claim[field]) == value end) then
        common.fail(('%s="%s'):format(name, attributes[name]), 'no claim has the %s "%s"', field, value)
      end
    end
    found = found:filter(function(claim) return #wanted == 0 or wanted:includes(tostring(claim[field])) end)
  end
  return found
end

-- Texts of a class, each on a line of its own below what is there.
local function below(content, class, texts)
  for _, text in ipairs(texts) do
    content:extend(#content > 0 and { pandoc.LineBreak() } or {})
    content:insert(pandoc.Span(plain(text), pandoc.Attr('', { class })))
  end
  return content
end

-- On a slide there is no room for why the line is where it is, nor for how many were asked (seen).
local function said(claim)
  local texts, reason = pandoc.List {}, common.form ~= 'slides' and claim.reason or ''
  texts:insert(claim['then'] ~= '' and 'Then: ' .. claim['then'] or nil)
  texts:insert(reason ~= '' and 'The line: ' .. reason or nil)
  return below(plain(claim.text), 'said-then', texts)
end

-- What was measured, and what the rule made of it. Where the author of a rule expects that it lies
-- near the line, his reason.
local function seen(claim)
  local reasons = common.split(claim.why, '[^\n]+')
  if claim.verdict ~= 'failed' then reasons:extend(claim.failed or {}) end
  if groups.near(claim) and claim.near_why ~= '' then
    reasons:insert('near the line: ' .. claim.near_why)
  end
  if (claim.repetitions or 0) > 0 and common.form ~= 'slides' then
    reasons:insert(('%d of %d repetitions'):format(claim.usable, claim.repetitions))
  end
  return below(plain(claim.numbers), 'why', reasons)
end

-- Who gave the word, and whether that was before the data; the word of the frozen judge, where it is another; on how
-- few sessions it rests. On a slide there is no room for it.
local function by_whom(claim)
  local texts = pandoc.List {}
  if common.form == 'slides' or (claim.judged or '') == '' then return texts end
  local other = claim.frozen ~= '' and claim.frozen ~= claim.verdict
  texts:insert(claim.judged .. (other and (' (the frozen judge: %s)'):format(claim.frozen) or ''))
  texts:insert(claim.lacking ~= '' and claim.lacking:match '^[^(]*[^( ]' or nil)
  return texts
end

local function word(claim)
  if not words:includes(claim.standing) then return below(pandoc.List {}, 'why', { claim.standing }) end
  local near = groups.near(claim) and claim.verdict ~= 'near the line' and claim.verdict ~= 'not decided'
  local content = below(pandoc.List { verdict(claim) }, 'near', { near and 'near the line' or nil })
  return below(content, 'whose', by_whom(claim))
end

-- The number, or the title, of the first chapter that shows its experiment; a link once that chapter is written.
local function chapter(claim)
  local slug = claim.chapters[1]
  if not slug then return {} end
  local _, by_label = common.labels()
  local row = by_label['ch:' .. slug]
  local link = row and pandoc.Link(row.number or row.text, slug .. '.html', row.text, pandoc.Attr('', { 'ref' }))
  return { link or pandoc.Str(slug) }
end

local function table_of(block)
  local wanted, is_slide = block.attributes, common.form == 'slides'
  local found = chosen(wanted)
  if #found == 0 then return pandoc.Para 'None, on the results shown.' end
  -- A link may point at a claim: ledger.html#claim-9. Whole sources stand once in the book;
  -- other choices repeat claims of these.
  local anchored = wanted.source and not (wanted.kind or wanted.standing or wanted.only or wanted.near)
  local rows = found:map(function(claim)
    local id = pandoc.Span(tostring(claim.id), pandoc.Attr(anchored and 'claim-' .. claim.id or ''))
    return is_slide and { { id }, said(claim), word(claim) }
      or { { id }, said(claim), seen(claim), word(claim), chapter(claim) }
  end)
  local head = is_slide and { '', 'claim', 'verdict' } or { '', 'claim', 'here', 'verdict', 'chapter' }
  local contents = {
    aligns = pandoc.List(head):map(function() return 'Left' end),
    widths = is_slide and { 0.06, 0.74, 0.2 } or { 0.05, 0.35, 0.33, 0.15, 0.12 },
    head = pandoc.List(head):map(plain),
    rows = rows,
  }
  local runs = found:filter(measured):map(function(claim) return { source = claim.source_run, run = claim.run } end)
  return numbers.labelled(block, { 'claims' }, runs, { numbers.table(contents) })
end

-- ---- the claims since 2003 ----------------------------------------------------------------------

-- Who said it, in what and when; whether its figures were found there; who says otherwise, and who saw the same.
local function witness(row)
  local content = plain(row.author .. ': ') .. pandoc.List { pandoc.Link(plain(row.work), row.url) }
  content:extend(row.date ~= '' and plain(', ' .. row.date) or {})
  local texts = pandoc.List { ('%s: %s'):format(row.checked, row.source_checked) }
  texts:extend(pandoc.List(row.disputed):map(function(text) return 'Disputed: ' .. text end))
  texts:extend(pandoc.List(row.confirmed):map(function(text) return 'Seen, too: ' .. text end))
  return below(content, 'why', texts)
end

-- The word, and what it rests on; where no rule decides, how it could be measured, or why it cannot be.
local function found_here(row)
  if row.rule == '' then return below(pandoc.List {}, 'why', { row.standing, row.why }) end
  local content = word(row)
  content:insert(pandoc.LineBreak())
  content:extend(seen(row))
  return below(content, 'why', { 'make bench ONLY=' .. row.experiment })
end

-- The rows whose `since` is one of these numbers.
local function table_since(block)
  local wanted = common.split(block.attributes.since, '%S+')
  for _, number in ipairs(wanted) do
    if not later():find_if(function(row) return tostring(row.since) == number end) then
      common.fail('since="' .. block.attributes.since, 'no claim since 2003 has the number %s', number)
    end
  end
  local rows = later():filter(function(row) return wanted:includes(tostring(row.since)) end)
  local runs = rows:filter(measured):map(function(row) return { source = row.source_run, run = row.run } end)
  return numbers.labelled(block, { 'claims', 'since' }, runs, { numbers.table {
    aligns = { 'Left', 'Left', 'Left', 'Left', 'Left' },
    widths = { 0.06, 0.3, 0.34, 0.2, 0.1 },
    head = pandoc.List({ '', 'claim', 'source', 'here', 'chapter' }):map(plain),
    rows = rows:map(function(row)
      local id = pandoc.Span(tostring(row.id), pandoc.Attr('claim-' .. row.id))
      return { { id }, said(row), witness(row), found_here(row), chapter(row) }
    end),
  } })
end

-- What stands under the whole ledger: who judged, on how many sessions, and how many words are expected to be wrong.
local function judges_of()
  local found = common.data 'judges'
  if not found then return common.fail('{.judges', 'no %s/data/judges.json', common.build) end
  local lines = pandoc.List(found.lines):map(function(line) return { pandoc.Plain(plain(line)) } end)
  return #lines > 0 and pandoc.Div(pandoc.BulletList(lines), pandoc.Attr('', { 'judges' })) or {}
end

local function count(span)
  local name = pandoc.utils.stringify(span.content)
  if not groups[name] then
    return common.fail('[' .. name .. ']{.count', 'no claims are counted as "%s"', name)
  end
  return pandoc.Span(tostring(#chosen(span.attributes):filter(groups[name])), pandoc.Attr('', { 'count' }))
end

function ledger.apply(doc)
  return doc:walk {
    Span = common.by_class { count = count },
    CodeBlock = common.by_class { claims = table_of, since = table_since, judges = judges_of },
  }
end

return ledger
