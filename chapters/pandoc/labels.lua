-- What can be referred to, as tables.py has written it down: rows in the order of the book, with the
-- fields that are named there.

local common = require 'common'

local labels = {}

local words = { figure = 'Figure', listing = 'Listing' }

-- Returns the rows, and the same by label.
function labels.load()
  if not labels.rows then
    labels.rows, labels.by_label = dofile(common.weave .. '/labels.lua'), {}
    for _, row in ipairs(labels.rows) do
      labels.by_label[row.label or {}] = row -- a section without label cannot be looked up
    end
  end
  return labels.rows, labels.by_label
end

-- "Figure 2.3", "Listing 2.1", "Chapter 2"; for what has no number its title.
function labels.name(row)
  if row.kind == 'page' and row.number then
    return (row.number:match('^%a$') and 'Appendix ' or 'Chapter ') .. row.number
  elseif row.number and words[row.kind] then
    return words[row.kind] .. ' ' .. row.number
  end
  return row.text or row.label
end

return labels
