-- Pass 1: writes the label rows of one chapter (labels.lua) in place of the document.
-- pandoc -f markdown -t html --lua-filter=collect.lua chapters/02-fork.md

package.path = pandoc.path.directory(PANDOC_SCRIPT_FILE) .. '/?.lua;' .. package.path
local common = require 'common'
local figures = require 'figures'
local labels = require 'labels'

local rows, counts = {}, { figure = 0, listing = 0 }

local function add(kind, label, id, text)
  local number
  local prefix, name = (label or ''):match('^(%a+):(.*)$')
  if label and (labels.prefixes[prefix] ~= kind or not name:match('^[%w-]+$')) then
    common.fail(('label %s on a %s; expected %s:name, with a-z, 0-9 and "-"'):format(
      label, kind, kind == 'figure' and 'fig' or kind == 'listing' and 'lst' or 'sec'), label)
  end
  if counts[kind] then
    counts[kind] = counts[kind] + 1
    local chapter = common.chapter_number(common.slug)
    number = (chapter and chapter .. '.' or '') .. counts[kind]
  end
  rows[#rows + 1] = labels.row {
    kind = kind, label = label, number = number, slug = common.slug, id = id, text = text,
  }
end

local function add_header(header)
  if header.level == 1 then
    local message = 'a heading "#" in a chapter; the title stands in the metadata'
    common.fail(message, '# ' .. pandoc.utils.stringify(header))
  end
  local label = header.identifier:match('^%a+:') and header.identifier or nil
  if label or header.level == 2 then
    add('section', label, common.html_id(header.identifier), pandoc.utils.stringify(header))
  end
end

local function add_figure(div)
  if div.identifier == '' then
    common.fail('a figure without label; write {#fig:name}', div.attributes.src)
  else
    add('figure', div.identifier, common.html_id(div.identifier))
  end
end

local function add_listing(block)
  if block.identifier ~= '' then
    add('listing', block.identifier, common.html_id(block.identifier))
  end
end

-- What may not be shown, or is shown elsewhere, cannot be counted.
local function refuse_labels(div, where)
  local function refuse(element)
    if element.identifier:match('^%a+:') then
      common.fail(('label %s inside %s'):format(element.identifier, where), element.identifier)
    end
  end
  div:walk { CodeBlock = refuse, Div = refuse, Header = refuse }
end

local function add_page(meta)
  local title = pandoc.utils.stringify(meta.title or '')
  if title == '' then
    common.fail('no title in the metadata')
  end
  rows[#rows + 1] = labels.row {
    kind = 'page',
    label = 'ch:' .. common.slug,
    number = common.chapter_number(common.slug),
    slug = common.slug,
    text = title,
    summary = pandoc.utils.stringify(meta.summary or ''),
  }
end

function Pandoc(doc)
  common.start(doc)
  add_page(doc.meta)
  figures.gather(doc):walk {
    traverse = 'topdown',
    Header = add_header,
    CodeBlock = add_listing,
    Div = function(div)
      if div.classes:includes('figure') then
        add_figure(div)
      elseif div.classes:includes('when') or div.classes:includes('answer') then
        refuse_labels(div, div.classes:includes('when') and 'a .when block' or 'an answer')
        return div, false
      end
    end,
  }
  common.finish()
  return pandoc.Pandoc { common.raw(table.concat(rows, '\n')) }
end
