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

-- The words of one block; answers are not given away.
local function words(block)
  local parts = pandoc.List {}
  local function drop(element)
    local hidden = element.classes:find_if(function(class)
      return class == 'run-label' or class == 'ref-label' or class == 'answer'
    end)
    return hidden and {}
  end
  local function keep(element)
    parts:insert(element.t == 'CodeBlock' and element.text or pandoc.utils.stringify(element))
  end
  pandoc.Div({ block }):walk({ Div = drop, Span = drop })
    :walk { CodeBlock = keep, Para = keep, Plain = keep, Header = keep }
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
