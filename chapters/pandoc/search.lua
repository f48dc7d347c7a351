-- The search index of one page: a line of JSON for each section, [page, id, title of the page, title
-- of the section, text]; joined in a script, so that search works from a file, without a server.

local common = require 'common'

local search = {}

-- The words of one block; answers are not given away.
local function words(block)
  local parts = pandoc.List {}
  local function none() return {} end
  local drop = common.by_class { ['run-label'] = none, ['ref-label'] = none, answer = none }
  local function keep(element)
    parts:insert(element.t == 'CodeBlock' and element.text or pandoc.utils.stringify(element))
  end
  pandoc.Div({ block }):walk({ Div = drop, Span = drop })
    :walk { CodeBlock = keep, Para = keep, Plain = keep, Header = keep }
  return table.concat(parts, ' ')
end

function search.apply(doc)
  if not common.searchfile then -- slides
    return doc
  end
  local title = pandoc.utils.stringify(doc.meta.title or '')
  local sections = pandoc.List { { id = '', title = '', text = '' } }
  for _, block in ipairs(doc.blocks) do
    if block.t == 'Header' and block.level <= 3 then
      sections:insert { id = block.identifier, title = pandoc.utils.stringify(block), text = '' }
    else
      sections[#sections].text = sections[#sections].text .. ' ' .. words(block)
    end
  end
  local lines = sections:map(function(section)
    local text = section.text:gsub('%s+', ' '):gsub('^ ', '')
    local fields = pandoc.List { common.slug .. '.html', section.id, title, section.title, text }
    return text == '' and section.id == '' and '' or '[' .. table.concat(fields:map(common.json), ',') .. '],\n'
  end)
  common.write(common.searchfile, table.concat(lines))
  return doc
end

return search
