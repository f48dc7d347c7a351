-- The search index of one page: a line of JSON for each section, [page, id, title of the page,
-- title of the section, text]. The lines of all pages are joined in a script, so that search works
-- from a file, without a server.

local common = require 'common'

local search = {}

local function quote(text)
  local escaped = text:gsub('[%c"\\<]', function(character)
    return ('\\u%04x'):format(character:byte())
  end)
  return '"' .. escaped .. '"'
end

local skipped = { ['run-label'] = true, ['ref-label'] = true, answer = true }

-- The words of one block; answers are not given away.
local function words(block)
  local parts = {}
  local function drop(element)
    for class in pairs(skipped) do
      if element.classes:includes(class) then
        return {}
      end
    end
  end
  pandoc.Div({ block }):walk({ Div = drop, Span = drop }):walk {
    CodeBlock = function(code) parts[#parts + 1] = code.text end,
    Para = function(text) parts[#parts + 1] = pandoc.utils.stringify(text) end,
    Plain = function(text) parts[#parts + 1] = pandoc.utils.stringify(text) end,
    Header = function(text) parts[#parts + 1] = pandoc.utils.stringify(text) end,
  }
  return table.concat(parts, ' ')
end

function search.apply(doc)
  local title = pandoc.utils.stringify(doc.meta.title or '')
  local lines, section = {}, { id = '', title = '', text = {} }
  local function close()
    local text = table.concat(section.text, ' '):gsub('%s+', ' ')
    if text ~= '' or section.id ~= '' then
      local fields = { common.slug .. '.html', section.id, title, section.title, text }
      lines[#lines + 1] = '[' .. table.concat(pandoc.List(fields):map(quote), ',') .. '],\n'
    end
  end
  for _, block in ipairs(doc.blocks) do
    if block.t == 'Header' and block.level <= 3 then
      close()
      local title_text = pandoc.utils.stringify(block)
      section = { id = common.html_id(block.identifier), title = title_text, text = {} }
    else
      table.insert(section.text, words(block))
    end
  end
  close()
  common.write(common.searchfile, table.concat(lines))
  return doc
end

return search
