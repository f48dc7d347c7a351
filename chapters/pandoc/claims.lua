-- The ledger in the text, never pasted. ``` {.claims source="talk page"} is a table of claims with
-- what was said then, what is measured here and the verdict; standing=, kind=, only= ("9 12") and
-- near=yes choose too. ``` {.tally} says how many claims of each source stand how, and
-- [changed]{.count} how many in all.

local common = require 'common'
local labels = require 'labels'
local numbers = require 'numbers'
local verdicts = require 'verdicts'

local claims = {}

local plain = numbers.plain

-- A claim that no rule decides stands as its kind says.
local standings = verdicts.words .. { 'another system', 'historical', 'no rule' }

local function measured(claim)
  return claim.rule ~= '' and claim.verdict ~= 'not judged' and claim.verdict ~= 'not measured here'
end

-- What [..]{.count} may name beside a standing.
local groups = {
  all = function() return true end,
  judged = function(claim) return claim.rule ~= '' end,
  near = function(claim) return claim.near and measured(claim) end,
  reference = function(claim) return claim.source_run == 'reference' and measured(claim) end,
}
for _, standing in ipairs(standings) do
  groups[standing] = function(claim) return claim.standing == standing end
end

-- Attribute -> the field of a claim that must be one of its words, what a fault calls it, and how
-- the words are told apart.
local choices = {
  source = { 'source', 'source', '%S+' },
  kind = { 'kind', 'kind', '%S+' },
  standing = { 'standing', 'standing', '[^,]+' },
  only = { 'id', 'number', '%S+' },
}

local function chosen(attributes)
  local found = attributes.near and verdicts.claims():filter(groups.near) or verdicts.claims()
  for name, choice in pairs(choices) do
    local field, called, pattern = table.unpack(choice)
    local wanted = common.split(attributes[name], pattern)
    -- A name that no claim has is a slip, and would leave claims out in silence.
    for _, value in ipairs(wanted) do
      if not (name == 'standing' and standings:includes(value))
        and not verdicts.claims():find_if(function(claim) return claim[field] == value end) then
        local needle = ('%s="%s'):format(name, attributes[name])
        common.fail(('no claim has the %s "%s"'):format(called, value), needle)
      end
    end
    found = found:filter(function(claim) return #wanted == 0 or wanted:includes(claim[field]) end)
  end
  return found
end

local function quiet(text, class)
  return pandoc.Span(plain(text), pandoc.Attr('', { class }))
end

local function lines(content, more)
  for _, inline in ipairs(more) do
    if #content > 0 then
      content:insert(pandoc.LineBreak())
    end
    content:insert(inline)
  end
  return content
end

-- On a slide there is no room for why the line is where it is, nor for how many were asked (seen).
local function said(claim)
  local beside = pandoc.List {}
  if claim['then'] ~= '' then
    beside:insert(quiet('Then: ' .. claim['then'], 'said-then'))
  end
  if (claim.reason or '') ~= '' and common.form ~= 'slides' then
    beside:insert(quiet('The line: ' .. claim.reason, 'said-then'))
  end
  return lines(plain(claim.text), beside)
end

-- What was measured, and what the rule made of it. Where the author of a rule expects that it lies
-- near the line, his reason.
local function seen(claim)
  local reasons = common.split(claim.why, '[^\n]+')
  if groups.near(claim) and claim.near_why ~= '' then
    reasons:insert('near the line: ' .. claim.near_why)
  end
  if (claim.repetitions or 0) > 0 and common.form ~= 'slides' then
    reasons:insert(('%d of %d repetitions'):format(claim.usable, claim.repetitions))
  end
  return lines(plain(claim.numbers), reasons:map(function(reason) return quiet(reason, 'why') end))
end

local function word(claim)
  if claim.rule == '' then
    return { quiet(claim.standing, 'why') }
  end
  local near = groups.near(claim) and quiet('near the line', 'near')
  return lines(pandoc.List { verdicts.word(claim) }, { near or nil })
end

-- The number of the first chapter that shows its experiment; a link once that chapter is written.
local function chapter(claim)
  local slug = claim.chapters[1]
  if not slug then
    return {}
  end
  local _, by_label = labels.load()
  local row, number = by_label['ch:' .. slug], common.chapter_number(slug) or slug
  local link = row and pandoc.Link(number, slug .. '.html', row.text, pandoc.Attr('', { 'ref' }))
  return { link or pandoc.Str(number) }
end

-- A table of these claims below the label of their runs, which go to the foot of the page too.
local function labelled(block, classes, found, contents)
  local runs = {}
  for _, claim in ipairs(found) do
    if measured(claim) then
      runs[claim.source_run] = true
      numbers.note_run { source = claim.source_run, run = claim.run }
    end
  end
  local content = pandoc.List { numbers.run_label(runs, true) }
  content:insert(numbers.table(contents))
  return pandoc.Div(content, pandoc.Attr(block.identifier, classes))
end

local function bind(block)
  local wanted = block.attributes
  local found = chosen(wanted)
  if #found == 0 then
    return pandoc.Para 'None, on the results shown.'
  end
  -- A link may point at a claim: 16-verdict.html#claim-9. Whole sources stand once in the book;
  -- other choices repeat claims of these.
  local anchored = wanted.source and not (wanted.kind or wanted.standing or wanted.only or wanted.near)
  local is_slide = common.form == 'slides'
  local rows = found:map(function(claim)
    local attr = pandoc.Attr('claim-' .. claim.id)
    local id = { anchored and pandoc.Span(claim.id, attr) or pandoc.Str(claim.id) }
    if is_slide then
      return { id, said(claim), word(claim) }
    end
    return { id, said(claim), seen(claim), word(claim), chapter(claim) }
  end)
  local head = is_slide and { '', 'claim', 'verdict' } or { '', 'claim', 'here', 'verdict', 'chapter' }
  return labelled(block, { 'claims' }, found, {
    aligns = pandoc.List(head):map(function() return 'Left' end),
    widths = is_slide and { 0.06, 0.74, 0.2 } or { 0.05, 0.36, 0.35, 0.15, 0.09 },
    head = pandoc.List(head):map(plain),
    rows = rows,
  })
end

local function tally_row(title, list)
  local row = pandoc.List { plain(title) }
  for _, standing in ipairs(standings) do
    local number = #list:filter(groups[standing])
    row:insert { pandoc.Str(number > 0 and tostring(number) or '–') }
  end
  row:insert { pandoc.Str(tostring(#list)) }
  return row
end

-- One row a source, in the order in which they first come.
local function tally(block)
  local all, rows, known = verdicts.claims(), pandoc.List {}, {}
  for _, claim in ipairs(all) do
    local title = claim.source_title
    if not known[title] then
      known[title] = true
      rows:insert(tally_row(title, all:filter(function(other) return other.source_title == title end)))
    end
  end
  rows:insert(tally_row('all', all))
  local head = pandoc.List { '' } .. standings .. { 'all' }
  local aligns = head:map(function(name) return name == '' and 'Left' or 'Right' end)
  local contents = { aligns = aligns, head = head:map(plain), rows = rows }
  return labelled(block, { 'claims', 'tally' }, all, contents)
end

local function count(span)
  if not span.classes:includes('count') then
    return nil
  end
  local name = pandoc.utils.stringify(span.content)
  if not groups[name] then
    common.fail(('no claims are counted as "%s"'):format(name), '[' .. name .. ']{.count')
    return nil
  end
  local number = #verdicts.claims():filter(groups[name])
  return pandoc.Span(tostring(number), pandoc.Attr('', { 'count' }))
end

function claims.apply(doc)
  return doc:walk {
    Span = count,
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
