-- Pass 1: a chapter or a file of slides as it is written, without numbers and verdicts, as JSON: its
-- metadata and its blocks in order. All that is not made by pandoc reads this (quest/book/outline.py has
-- the fields): labels, lint, schedule, the reader's path.

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local figures = require 'figures'

local lines, at, blocks = {}, 0, pandoc.List {}

-- pandoc tells filters no positions: the next line of the source that fits, from `first` on. What is
-- not found stands where the one before it does.
local function seek(pattern, word, first)
  for number = first or at + 1, #lines do
    if lines[number]:find(pattern) and lines[number]:find(word or '', 1, true) then
      at = number
      break
    end
  end
  return at
end

local function add(kind, line, inside, text, element)
  element = element or { classes = pandoc.List {}, attributes = {} }
  blocks:insert {
    kind = kind, line = line, inside = inside, text = text, level = element.level or 0,
    id = element.identifier or '', classes = element.classes, values = element.attributes,
  }
end

-- Words as a reader sees them, code between backquotes; a bound number is [0], a claim's verdict [61].
local words = {
  Code = function(code) return pandoc.Str('`' .. code.text .. '`') end,
  Span = common.by_class {
    num = function() return pandoc.Str '[0]' end,
    verdict = function(span) return pandoc.Str('[' .. pandoc.utils.stringify(span) .. ']') end,
  },
}

-- What stands in paragraphs and tables; `line`: where it is known.
local function add_text(element, inside, line)
  local text = pandoc.utils.stringify(pandoc.Div({ element }):walk(words))
  add('text', line or seek('', text:match '%w+' or '\n'), inside, text)
  pandoc.Div({ element }):walk {
    Image = function(image) add('image', seek('', image.src, at), inside, image.src, image) end,
    Span = function(span) add('span', at, inside, pandoc.utils.stringify(span), span) end,
  }
end

local read

local function read_items(list, inside)
  for _, item in ipairs(list.content) do
    add('item', at, inside, '')
    read(item, inside)
  end
end

local readers = {
  Header = function(header, inside)
    local text = pandoc.utils.stringify(header)
    local line = seek('^' .. ('#'):rep(header.level) .. '%s', text:match '%w+')
    add('heading', line, inside, text, header)
  end,
  CodeBlock = function(block, inside)
    local kind = block.classes:find_if(function(class) return class == 'player' or class == 'machine' end)
    local line, caption = seek '^%s*[`~][`~][`~]', block.attributes.caption
    if kind then
      block.classes:insert 'figure'
      add('image', line, inside, kind .. '-' .. (block.attributes.recording or block.attributes.name or ''), block)
      if caption then add_text(pandoc.Plain(common.inlines(caption)), inside .. { 'caption' }, line) end
    else
      add('fence', line, inside, block.text, block)
    end
    if kind == 'machine' then
      add_text(pandoc.Plain(pandoc.utils.blocks_to_inlines(pandoc.read(block.text, 'markdown').blocks)), inside .. { 'machine' }, line + 1)
    end
    at = line + (kind == 'player' and 1 or #common.lines(block.text) + 1)
  end,
  Div = function(div, inside)
    local src = div.classes:includes 'figure' and div.attributes.src
    if src then
      add('image', seek('', src), inside, src, div)
      return add_text(div.content[1], inside .. { 'caption' }, at)
    end
    add('div', seek('^%s*:::', div.classes[1]), inside, '', div)
    read(div.content, inside .. div.classes)
  end,
  BlockQuote = function(quote, inside) read(quote.content, inside) end,
  BulletList = read_items,
  OrderedList = read_items,
  DefinitionList = function(list, inside)
    for _, item in ipairs(list.content) do
      local term = pandoc.utils.stringify(item[1])
      add('term', seek('', term:match '%w+'), inside, term)
      for _, definition in ipairs(item[2]) do read(definition, inside) end
    end
  end,
  Table = function(block, inside)
    block:walk {
      Plain = function(cell)
        add_text(cell, inside .. { 'table' }, seek('', pandoc.utils.stringify(cell):match '%w+', at))
      end,
    }
  end,
}

function read(content, inside)
  for _, block in ipairs(content) do (readers[block.t] or add_text)(block, inside) end
end

function Pandoc(doc)
  common.start(doc)
  lines = common.lines(common.read(common.source))
  at = lines[1] == '---' and seek('^---$', '', 2) or 0
  read(figures.gather(doc).blocks, pandoc.List {})
  local metadata = {}
  for name, value in pairs(doc.meta) do metadata[name] = pandoc.utils.stringify(value) end
  local outline = { source = common.source, metadata = metadata, blocks = blocks }
  return pandoc.Pandoc { common.raw(common.json(outline)) }
end
