-- The label database: what every chapter offers for reference. Pass 1 (collect.lua) writes the rows
-- of one chapter, labels.py joins them and refuses doubles, pass 2 reads them. A row has seven
-- fields with tabs between:
--   kind   page, section, figure, listing
--   label  ch:02-fork, sec:reaping, fig:x, lst:x, diff:x; "-" for a section that has none
--   number 2, 2.1 or "-"
--   slug   02-fork
--   id     of the HTML element; "-" for a page
--   text   title of the page, the section, or "-"
--   summary of a page, or "-"

local common = require 'common'

local labels = {}

labels.prefixes = {
  fig = 'figure', lst = 'listing', diff = 'listing', ch = 'page', sec = 'section',
}
labels.words = { figure = 'Figure', listing = 'Listing' }

local fields = { 'kind', 'label', 'number', 'slug', 'id', 'text', 'summary' }

function labels.row(values)
  local row = {}
  for index, field in ipairs(fields) do
    local text = tostring(values[field] or '-'):gsub('%s+', ' ')
    row[index] = text == '' and '-' or text
  end
  return table.concat(row, '\t')
end

-- Returns rows (in order of the book) and the same by label. Both are empty when there is no
-- database.
function labels.load()
  if labels.rows then
    return labels.rows, labels.by_label
  end
  labels.rows, labels.by_label = {}, {}
  for _, line in ipairs(common.lines(common.labels and common.read(common.labels) or '')) do
    local row, position = {}, 0
    for value in (line .. '\t'):gmatch('([^\t]*)\t') do
      position = position + 1
      row[fields[position] or 'rest'] = value ~= '-' and value or nil
    end
    if row.kind then
      labels.rows[#labels.rows + 1] = row
      labels.by_label[row.label or {}] = row -- a section without label cannot be looked up
    end
  end
  return labels.rows, labels.by_label
end

-- "Figure 2.3", "Listing 2.1", "Chapter 2"; for what has no number its title.
function labels.name(row)
  if row.kind == 'page' and row.number then
    return (row.number:match('^%a$') and 'Appendix ' or 'Chapter ') .. row.number
  elseif row.number and labels.words[row.kind] then
    return labels.words[row.kind] .. ' ' .. row.number
  end
  return row.text or row.label
end

return labels
