-- Puts woven chapters together for the one-file book and the EPUB, and takes the answers out of
-- pages.

local common = require 'common'
local navigation = require 'navigation'

local assemble = {}

local function is(class)
  return function(block)
    return block.t == 'Div' and block.classes:includes(class)
  end
end

local is_answer = is 'answer'

-- Answers of a chapter, in order; wherever they stand.
local function answers_of(doc)
  local found = pandoc.List {}
  doc:walk {
    traverse = 'topdown',
    Div = function(div)
      if is_answer(div) then
        found:insert(div)
        return div, false
      end
    end,
  }
  return found
end

-- Puts a link where each answer stood; `page` is the page of answers, or "" when it is in the same
-- file.
function assemble.without_answers(doc, page)
  return doc:walk {
    Div = function(div)
      if is_answer(div) then
        local link = pandoc.Link('Answer', page .. '#' .. div.identifier)
        return pandoc.Div({ pandoc.Plain { link } }, pandoc.Attr('', { 'answer-link' }))
      end
    end,
  }
end

local function with_way_back(answer, page)
  local exercise = answer.identifier:gsub('^answer', 'exercise')
  local link = pandoc.Link('Back to the exercise', page .. '#' .. exercise)
  answer.content:insert(pandoc.Para { link })
  return answer
end

-- Links inside a chapter, seen from outside it: #id becomes 02-fork.html#id.
local function with_page(block, slug)
  return block:walk {
    Link = function(link)
      if link.target:match('^#') then
        link.target = slug .. '.html' .. link.target
        return link
      end
    end,
  }
end

-- The blocks of the page of answers.
function assemble.answers(chapters)
  local blocks = pandoc.List {}
  for _, chapter in ipairs(chapters) do
    local found = answers_of(chapter.doc)
    if #found > 0 then
      local page = navigation.page(chapter.slug)
      local heading = (page.number and page.number .. '  ' or '') .. page.text
      blocks:insert(pandoc.Header(2, heading, pandoc.Attr('answers-' .. chapter.slug)))
    end
    for _, answer in ipairs(found) do
      blocks:insert(with_way_back(with_page(answer, chapter.slug), chapter.slug .. '.html'))
    end
  end
  if #blocks == 0 then
    blocks:insert(pandoc.Para('No chapter has exercises yet.'))
  end
  return blocks
end

-- Headings repeat from chapter to chapter ("The code"), so their ids take the slug in front; labels
-- are unique already.
local function rename(chapter)
  local renamed = {}
  local doc = chapter.doc:walk {
    Header = function(header)
      if not header.identifier:match('^sec%-') then
        local id = chapter.slug .. '--' .. header.identifier
        renamed[header.identifier] = id
        header.identifier = id
        return header
      end
    end,
  }
  return doc, renamed
end

-- 02-fork.html -> #ch-02-fork, 02-fork.html#id -> #id, #id -> #id, by the new names.
local function relink(doc, slug, renamed)
  return doc:walk {
    Link = function(link)
      local page, id = link.target:match('^([%w-]+)%.html#?(.*)$')
      if link.target:match('^#') then
        page, id = slug, link.target:sub(2)
      end
      if page and renamed[page] then
        link.target = '#' .. (id == '' and 'ch-' .. page or renamed[page][id] or id)
        return link
      elseif link.target:match('^%.%./') then
        return link.content -- a file of the tree; the book may stand anywhere
      end
    end,
  }
end

local function chapter_title(chapter)
  local page = navigation.page(chapter.slug)
  local content = pandoc.List {}
  if page.number then
    content:insert(pandoc.Span(page.number, pandoc.Attr('', { 'number' })))
    content:insert(pandoc.Space())
  end
  -- The front page bears the name of the book, which the book already has on its cover.
  content:insert(pandoc.Str(chapter.slug == 'index' and navigation.FRONT or page.text))
  return pandoc.Header(1, content, pandoc.Attr('ch-' .. chapter.slug))
end

local function refuse_double_ids(doc)
  local seen = {}
  local function note(element)
    local id = element.identifier
    if id ~= '' and seen[id] then
      common.fail(('the id "%s" is doubled in the book'):format(id))
    end
    seen[id] = true
  end
  doc:walk { Header = note, Div = note, Span = note }
end

-- All chapters in one document, the answers at its end.
function assemble.book(chapters)
  local blocks, renamed, parts = pandoc.List {}, { answers = {} }, {}
  local answers = { slug = 'answers', doc = pandoc.Pandoc(assemble.answers(chapters)) }
  for _, chapter in ipairs(chapters) do
    chapter.doc = assemble.without_answers(chapter.doc, '')
    parts[#parts + 1] = chapter
  end
  parts[#parts + 1] = answers
  for _, part in ipairs(parts) do
    part.doc, renamed[part.slug] = rename(part)
  end
  for _, part in ipairs(parts) do
    blocks:insert(chapter_title(part))
    blocks:extend(relink(part.doc, part.slug, renamed).blocks)
  end
  local book = pandoc.Pandoc(blocks)
  refuse_double_ids(book)
  return book
end

-- Puts the figures into the document. pandoc could, but 3.1 would put the elements of an SVG in
-- place of the image, and with them go the alternative text and the style.
function assemble.embed_figures(doc)
  return doc:walk {
    Image = function(image)
      local text = image.src:match('^figures/') and common.read(common.build .. '/' .. image.src)
      if text then
        image.src = 'data:image/svg+xml,' .. text:gsub('[^%w%-._~/:=; ]', function(character)
          return ('%%%02X'):format(character:byte())
        end):gsub(' ', '%%20')
        return image
      end
    end,
  }
end

-- The slides of one track, or all. A slide is a heading of level 1 or 2 and what follows it.
function assemble.track(blocks, track)
  if track == '' then
    return blocks
  end
  local kept, keep = pandoc.List {}, false
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level <= 2 then
      local tracks = ' ' .. (block.attributes.track or '') .. ' '
      keep = tracks:find(' ' .. track .. ' ', 1, true) ~= nil
    end
    if keep then
      kept:insert(block)
    end
  end
  return kept
end

return assemble
