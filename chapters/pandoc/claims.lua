-- The ledger in the text, never pasted. ``` {.claims source="talk page"} is a table of claims with
-- what was said then, what is measured here and the verdict; standing=, kind=, only= ("9 12") and
-- near=yes choose too. ``` {.tally} says how many claims of each source stand how, and
-- [changed]{.count} how many in all.

local common = require 'common'
local labels = require 'labels'
local ledger = require 'ledger'
local numbers = require 'numbers'
local verdicts = require 'verdicts'

local claims = {}

local NOTHING = '–'

-- What [..]{.count} may name beside a standing.
local groups = {
  all = function() return true end,
  judged = function(claim) return claim.rule ~= '' end,
  near = function(claim) return claim.near and claims.measured(claim) end,
  reference = function(claim) return claim.source_run == 'reference' and claims.measured(claim) end,
}

function claims.measured(claim)
  return claim.rule ~= '' and claim.verdict ~= 'not measured here'
end

local function quiet(text, class)
  return pandoc.Span(numbers.plain(text), pandoc.Attr('', { class }))
end

-- ---- which claims -------------------------------------------------------------------------------

local function split(text, pattern)
  local list = pandoc.List {}
  for part in (text or ''):gmatch(pattern) do
    list:insert((part:gsub('^%s+', ''):gsub('%s+$', '')))
  end
  return list
end

local function has(list, value)
  return #list == 0 or list:includes(value)
end

-- A name that no claim has is a slip, and would leave claims out in silence.
local function refuse_unknown(wanted, field, needle)
  local all = ledger.load()
  for _, name in ipairs(wanted) do
    local known = field == 'standing' and ledger.standings:includes(name)
      or all:find_if(function(claim) return claim[field] == name end)
    if #all > 0 and not known then
      common.fail(('no claim has the %s "%s"'):format(field == 'id' and 'number' or field, name), needle)
    end
  end
end

local function chosen(attributes)
  local wanted = {
    source = split(attributes.source, '%S+'),
    kind = split(attributes.kind, '%S+'),
    standing = split(attributes.standing, '[^,]+'),
    id = split(attributes.only, '%S+'),
  }
  for field, names in pairs(wanted) do
    local name = field == 'id' and 'only' or field
    refuse_unknown(names, field, ('%s="%s'):format(name, attributes[name] or ''))
  end
  return ledger.load():filter(function(claim)
    for field, names in pairs(wanted) do
      if not has(names, claim[field]) then
        return false
      end
    end
    return not attributes.near or groups.near(claim)
  end)
end

-- ---- a table of claims --------------------------------------------------------------------------

local function said(claim)
  local content = numbers.plain(claim.text)
  if claim['then'] ~= '' then
    content:extend { pandoc.LineBreak(), quiet('Then: ' .. claim['then'], 'said-then') }
  end
  return content
end

-- What was measured, and what the rule made of it. Where the author of a rule expects that it lies
-- near the line, his reason.
local function seen(claim)
  local content = numbers.plain(claim.numbers)
  local reasons = split(claim.why, '[^\n]+')
  if groups.near(claim) and claim.near_why ~= '' then
    reasons:insert('near the line: ' .. claim.near_why)
  end
  for _, reason in ipairs(reasons) do
    if #content > 0 then
      content:insert(pandoc.LineBreak())
    end
    content:insert(quiet(reason, 'why'))
  end
  return content
end

local function word(claim)
  if claim.rule == '' then
    return pandoc.List { quiet(claim.standing, 'why') }
  end
  local content = pandoc.List { verdicts.word(claim) }
  if groups.near(claim) then
    content:extend { pandoc.LineBreak(), quiet('near the line', 'near') }
  end
  return content
end

-- The number of the first chapter that shows its experiment; a link once that chapter is written.
local function chapter(claim)
  local slug = claim.chapters[1]
  if not slug then
    return {}
  end
  local _, by_label = labels.load()
  local row = by_label['ch:' .. slug]
  local number = common.chapter_number(slug) or slug
  if not row or common.form == 'slides' then
    return { pandoc.Str(number) }
  end
  return { pandoc.Link(number, slug .. '.html', row.text, pandoc.Attr('', { 'ref' })) }
end

local function cells(claim, anchored)
  -- A link may point at a claim: 16-verdict.html#claim-9.
  local id = anchored and pandoc.Span(claim.id, pandoc.Attr('claim-' .. claim.id)) or pandoc.Str(claim.id)
  if common.form == 'slides' then
    return { { id }, said(claim), word(claim) }
  end
  return { { id }, said(claim), seen(claim), word(claim), chapter(claim) }
end

local function as_table(head, aligns, widths, rows)
  local function row(contents)
    return pandoc.List(contents):map(function(content) return { pandoc.Plain(content) } end)
  end
  local simple = pandoc.SimpleTable({}, aligns, widths, row(head), pandoc.List(rows):map(row))
  return pandoc.utils.from_simple_table(simple)
end

-- The label of the run in the margin, and the runs for the foot of the page.
local function run_label(found)
  local runs = {}
  for _, claim in ipairs(found) do
    if claims.measured(claim) then
      runs[claim.source_run] = true
      numbers.note_run { source = claim.source_run, run = claim.run }
    end
  end
  local label = numbers.run_label(runs)
  return label and pandoc.Plain { label }
end

local function bind(block)
  local found = chosen(block.attributes)
  if #found == 0 then
    return pandoc.Para 'None, on the results shown.'
  end
  local head = { {}, numbers.plain 'claim', numbers.plain 'here', numbers.plain 'verdict', numbers.plain 'chapter' }
  local widths = { 0.05, 0.36, 0.35, 0.15, 0.09 }
  if common.form == 'slides' then
    head, widths = { {}, numbers.plain 'claim', numbers.plain 'verdict' }, { 0.06, 0.74, 0.2 }
  end
  -- Whole sources stand once in the book; other choices repeat claims of these.
  local anchored = block.attributes.source ~= nil
  for _, name in ipairs { 'kind', 'standing', 'only', 'near' } do
    anchored = anchored and not block.attributes[name]
  end
  local rows = found:map(function(claim) return cells(claim, anchored) end)
  local aligns = pandoc.List(head):map(function() return pandoc.AlignLeft end)
  local content = pandoc.List { run_label(found) }
  content:insert(as_table(head, aligns, widths, rows))
  return pandoc.Div(content, pandoc.Attr(block.identifier, { 'claims' }))
end

-- ---- how many -----------------------------------------------------------------------------------

local function number_of(list, test)
  return #list:filter(test)
end

local function count(name)
  if ledger.standings:includes(name) then
    return number_of(ledger.load(), function(claim) return claim.standing == name end)
  end
  return groups[name] and number_of(ledger.load(), groups[name])
end

local function count_of(span)
  if not span.classes:includes('count') then
    return nil
  end
  local name = pandoc.utils.stringify(span.content)
  local number = count(name)
  if not number then
    common.fail(('no claims are counted as "%s"'):format(name), '[' .. name .. ']{.count')
    return nil
  end
  return pandoc.Span(tostring(number), pandoc.Attr('', { 'count' }))
end

-- One row a source, in the order in which they first come.
local function by_source(list)
  local titles, of = pandoc.List {}, {}
  for _, claim in ipairs(list) do
    local title = claim.source_title
    if not of[title] then
      titles:insert(title)
      of[title] = pandoc.List {}
    end
    of[title]:insert(claim)
  end
  return titles, of
end

local function tally_row(title, list)
  local row = pandoc.List { numbers.plain(title) }
  for _, standing in ipairs(ledger.standings) do
    local number = number_of(list, function(claim) return claim.standing == standing end)
    row:insert { pandoc.Str(number > 0 and tostring(number) or NOTHING) }
  end
  row:insert { pandoc.Str(tostring(#list)) }
  return row
end

local function tally(block)
  local all = ledger.load()
  local titles, of = by_source(all)
  local rows = titles:map(function(title) return tally_row(title, of[title]) end)
  rows:insert(tally_row('all', all))
  local head = pandoc.List { {} }
  head:extend(ledger.standings:map(numbers.plain))
  head:insert(numbers.plain 'all')
  local aligns, widths = pandoc.List { pandoc.AlignLeft }, pandoc.List { 0 }
  for index = 2, #head do
    aligns[index], widths[index] = pandoc.AlignRight, 0
  end
  local content = pandoc.List { run_label(all) }
  content:insert(as_table(head, aligns, widths, rows))
  return pandoc.Div(content, pandoc.Attr(block.identifier, { 'claims', 'tally' }))
end

function claims.apply(doc)
  return doc:walk {
    Span = count_of,
    CodeBlock = function(block)
      if block.classes:includes('claims') then
        return bind(block)
      elseif block.classes:includes('tally') then
        return tally(block)
      end
    end,
  }
end

return claims
