-- Tables of the sources beside today's: ``` {.then table="fork-latency.linking"} becomes a table out
-- of build/data/then.json: what was reported then, what was measured here, and both as ratios to one
-- of the rows. A row that was measured on the reference machine only carries a visible "ref"; one
-- that nothing of ours stands beside says why. caption= stands for the title of the table.

local common = require 'common'
local json = require 'json'
local numbers = require 'numbers'

local then_ = {}
local tables

local function load()
  local path = common.build .. '/data/then.json'
  if tables == nil then
    local text = common.depend(path)
    local decoded, reason, line = json.decode(text or '')
    if text and not decoded then
      common.fail_at(path .. ':' .. line, reason)
    elseif not text then
      common.fail_at(path, 'not there; results are exported to it before the book is made')
    end
    tables = decoded or false
  end
  return tables, path
end

local plain = numbers.plain

local function cell(content)
  return { pandoc.Plain(content) }
end

-- The reason takes the place of the value.
local function row_of(row)
  local here = plain(row.here)
  here[#here + 1] = numbers.ref_label(row.source)
  if row.source == 'none' then
    here = { pandoc.Span(here, pandoc.Attr('', { 'why' })) }
  elseif #row.marks > 0 then
    local title = { title = 'some repetitions are marked: ' .. table.concat(row.marks, ', ') }
    here[#here + 1] = pandoc.Span({ pandoc.Str('*') }, pandoc.Attr('', { 'marks' }, title))
  end
  return {
    cell(plain(row.title)),
    cell(plain(row['then'])),
    cell(plain(row.then_ratio)),
    cell(here),
    cell(plain(row.ratio)),
  }
end

local function drawn(found, caption)
  local unit = found.unit ~= '' and ', ' .. found.unit or ''
  local left, right = pandoc.AlignLeft, pandoc.AlignRight
  local head = { {}, cell(plain('then' .. unit)), cell(plain('ratio')), cell(plain('here')), cell(plain('ratio')) }
  local rows = {}
  for index, row in ipairs(found.rows) do
    rows[index] = row_of(row)
  end
  local simple = pandoc.SimpleTable(
    plain(caption or ('%s (%s); ratios to %s'):format(found.title, found.source, found.base)),
    { left, right, right, left, left },
    { 0, 0, 0, 0, 0 },
    head,
    rows
  )
  return pandoc.utils.from_simple_table(simple)
end

local function notes_of(found)
  local blocks = {}
  for index, note in ipairs(found.notes) do
    blocks[index] = pandoc.Para(plain(note))
  end
  return pandoc.Div(blocks, pandoc.Attr('', { 'notes-below' }))
end

local function bind(block)
  if not block.classes:includes('then') then
    return nil
  end
  local key = block.attributes.table or ''
  local known, path = load()
  local found = known and known[key]
  if not found then
    if known then
      common.fail(('unknown table "%s" (not in %s)'):format(key, path), 'table="' .. key)
    end
    return {}
  end
  local seen = {}
  for _, row in ipairs(found.rows) do
    seen[row.source] = true
    numbers.note_run { source = row.source, run = found.runs[row.source] }
  end
  local label = numbers.run_label(seen)
  local content = pandoc.List { label and pandoc.Plain { label } }
  content[#content + 1] = drawn(found, block.attributes.caption)
  if #found.notes > 0 and common.form ~= 'slides' then
    content[#content + 1] = notes_of(found)
  end
  return pandoc.Div(content, pandoc.Attr(block.identifier, { 'then' }))
end

function then_.apply(doc)
  return doc:walk { CodeBlock = bind }
end

return then_
