-- Tables of the sources beside today's, out of build/data/then.json. A row that was measured on the
-- reference machine only carries a visible "ref"; one that nothing of ours stands beside says why.

local common = require 'common'
local numbers = require 'numbers'

local then_ = {}

local plain = numbers.plain

-- The reason takes the place of the value.
local function cells(row)
  local here = plain(row.here)
  here[#here + 1] = numbers.ref_label(row.source)
  if row.source == 'none' then
    here = { pandoc.Span(here, pandoc.Attr('', { 'why' })) }
  elseif #row.marks > 0 then
    local title = { title = 'some repetitions are marked: ' .. table.concat(row.marks, ', ') }
    here[#here + 1] = pandoc.Span({ pandoc.Str('*') }, pandoc.Attr('', { 'marks' }, title))
  end
  return { plain(row.title), plain(row['then']), plain(row.then_ratio), here, plain(row.ratio) }
end

local function draw(block)
  local key = block.attributes.table or ''
  local found = common.data('then')[key]
  if not found then
    return common.fail('table="' .. key, 'unknown table "%s" (not in %s/data/then.json)', key, common.build)
  end
  local unit = found.unit ~= '' and ', ' .. found.unit or ''
  local title = ('%s (%s); ratios to %s'):format(found.title, found.source, found.base)
  local content = pandoc.List { numbers.table {
    caption = plain(block.attributes.caption or title),
    aligns = { 'Left', 'Right', 'Right', 'Left', 'Left' },
    head = { {}, plain('then' .. unit), plain('ratio'), plain('here'), plain('ratio') },
    rows = pandoc.List(found.rows):map(cells),
  } }
  if #found.notes > 0 and common.form ~= 'slides' then
    local notes = pandoc.List(found.notes):map(function(note) return pandoc.Para(plain(note)) end)
    content:insert(pandoc.Div(notes, pandoc.Attr('', { 'notes-below' })))
  end
  local rows = pandoc.List(found.rows):map(function(row)
    return { source = row.source, run = found.runs[row.source] }
  end)
  return numbers.labelled(block, { 'then' }, rows, content)
end

function then_.apply(doc) return doc:walk { CodeBlock = common.by_class { ['then'] = draw } } end

return then_
