-- The search index of one page: a line of JSON for each section, [page, id, title of the page, title
-- of the section, text]; joined in a script, so that search works from a file, without a server. A term of a
-- list of definitions is a section of its own.

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

-- "edge-triggered, level-triggered" -> glossary-edge-triggered-level-triggered: in the one-file book, too, there is one of it.
local function id_of(term) return common.slug .. '-' .. term:lower():gsub('[^%w_]+', '-'):gsub('^%-', ''):gsub('%-$', '') end

-- Terms get an id, so that a search, the index of calls and a page can lead to them.
local function name_terms(list)
  for _, item in ipairs(list.content) do
    item[1] = { pandoc.Span(item[1], pandoc.Attr(id_of(pandoc.utils.stringify(item[1])))) }
  end
  return list
end

-- The sections of a page that these blocks are.
local function sections_of(blocks)
  local sections = pandoc.List { { id = '', title = '', text = '' } }
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level <= 3 then
      sections:insert { id = block.identifier, title = pandoc.utils.stringify(block), text = '' }
    elseif block.t == 'DefinitionList' then
      for _, item in ipairs(block.content) do
        local text = table.concat(pandoc.List(item[2]):map(function(blocks_of) return words(pandoc.Div(blocks_of)) end), ' ')
        sections:insert { id = item[1][1].identifier, title = pandoc.utils.stringify(item[1]), text = text }
      end
    else
      sections[#sections].text = sections[#sections].text .. ' ' .. words(block)
    end
  end
  return sections
end

function search.apply(doc)
  if not common.searchfile then -- slides
    return doc
  end
  doc = doc:walk { DefinitionList = name_terms }
  local title = pandoc.utils.stringify(doc.meta.title or '')
  local lines = sections_of(doc.blocks):map(function(section)
    local text = section.text:gsub('%s+', ' '):gsub('^ ', '')
    local fields = pandoc.List { common.slug .. '.html', section.id, title, section.title, text }
    return text == '' and section.id == '' and '' or '[' .. table.concat(fields:map(common.json), ',') .. '],\n'
  end)
  common.write(common.searchfile, table.concat(lines))
  return doc
end

return search
