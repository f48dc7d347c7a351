-- Puts woven chapters together for the one-file book and the EPUB, takes the answers out of pages,
-- and puts the slides of a track in its order.

local common = require 'common'

local assemble = { FRONT = 'About this book' }

-- All pages in order; the page of answers is the last.
function assemble.pages()
  local pages = common.labels():filter(function(row) return row.kind == 'page' end)
  return pages .. { { slug = 'answers', text = 'Answers to the exercises' } }
end

local function page_of(slug)
  return (assemble.pages():find_if(function(row) return row.slug == slug end))
end

-- The document with a link where each answer stood, and the answers; `page` is the page of answers,
-- or "" when it is in the same file.
function assemble.without_answers(doc, page)
  local answers = pandoc.List {}
  local function take(div)
    answers:insert(div)
    local link = pandoc.Link('Answer', page .. '#' .. div.identifier)
    return pandoc.Div({ pandoc.Plain { link } }, pandoc.Attr('', { 'answer-link' })), false
  end
  return doc:walk { traverse = 'topdown', Div = common.by_class { answer = take } }, answers
end

-- The blocks of the page of answers; links inside a chapter are seen from outside it, and each
-- answer has a way back.
function assemble.answers(chapters)
  local blocks = pandoc.List {}
  for _, chapter in ipairs(chapters) do
    local row, page = page_of(chapter.slug), chapter.slug .. '.html'
    local _, answers = assemble.without_answers(chapter.doc, '')
    if #answers > 0 then
      local heading = (row.number and row.number .. '  ' or '') .. row.text
      blocks:insert(pandoc.Header(2, heading, pandoc.Attr('answers-' .. chapter.slug)))
    end
    for _, answer in ipairs(answers) do
      answer = answer:walk {
        Link = function(link)
          link.target = link.target:gsub('^#', page .. '#')
          return link
        end,
      }
      local exercise = answer.identifier:gsub('^answer', 'exercise')
      answer.content:insert(pandoc.Para { pandoc.Link('Back to the exercise', page .. '#' .. exercise) })
      blocks:insert(answer)
    end
  end
  return blocks
end

-- Headings repeat from chapter to chapter ("The code"), so their ids take the slug in front; labels
-- are unique already.
local function rename(part)
  local renamed = {}
  part.doc = part.doc:walk {
    Header = function(header)
      local id = header.identifier
      if not id:match('^sec%-') then
        header.identifier = part.slug .. '--' .. id
        renamed[id] = header.identifier
        return header
      end
    end,
  }
  return renamed
end

-- 02-fork.html -> #ch-02-fork, 02-fork.html#id -> #id, #id -> #id, by the new names.
local function relink(doc, slug, renamed)
  return doc:walk {
    Link = function(link)
      local page, id = link.target:gsub('^#', slug .. '.html#'):match('^([%w-]+)%.html#?(.*)$')
      if renamed[page or ''] then
        link.target = '#' .. (id == '' and 'ch-' .. page or renamed[page][id] or id)
        return link
      elseif link.target:match('^%.%./') then
        return link.content -- a file of the tree; the book may stand anywhere
      end
    end,
  }
end

local function chapter_title(slug)
  local page, content = page_of(slug), pandoc.List {}
  content:extend(page.number and { pandoc.Span(page.number, pandoc.Attr('', { 'number' })), pandoc.Space() } or {})
  -- The front page bears the name of the book, which the book already has on its cover.
  content:insert(pandoc.Str(slug == 'index' and assemble.FRONT or page.text))
  return pandoc.Header(1, content, pandoc.Attr('ch-' .. slug, page.role == 'part' and { 'part' } or {}))
end

-- All chapters put into this document, the answers at its end.
function assemble.book(doc, chapters)
  local parts = chapters .. { { slug = 'answers', doc = pandoc.Pandoc(assemble.answers(chapters)) } }
  local renamed = {}
  for _, part in ipairs(parts) do
    if part.slug ~= 'answers' then part.doc = assemble.without_answers(part.doc, '') end
    renamed[part.slug] = rename(part)
  end
  for _, part in ipairs(parts) do
    doc.blocks:insert(chapter_title(part.slug))
    doc.blocks:extend(relink(part.doc, part.slug, renamed).blocks)
  end
  return doc
end

-- Puts the figures into the document. pandoc could (--self-contained), but 2.17 takes 2 GB for it,
-- and 3.1 would put the elements of an SVG in place of the image, and with them go the alternative
-- text and the style.
function assemble.embed_figures(doc)
  return doc:walk {
    Image = function(image)
      local text = image.src:match('^figures/') and common.read(common.build .. '/' .. image.src)
      if text then
        image.src = 'data:image/svg+xml,' .. text:gsub('[^%w%-._~/:=;]', function(character)
          return ('%%%02X'):format(character:byte())
        end)
        return image
      end
    end,
  }
end

-- A slide is a heading of level 1 or 2 and what follows it. With `order`, lines "id minutes" (what
-- quest/book/tracks.py prints), these slides in this order, for so long; without it all.
function assemble.slides(blocks, order)
  local by_id, slide = {}, pandoc.List {}
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level <= 2 then
      slide = pandoc.List {}
      by_id[block.identifier] = slide
    end
    slide:insert(block)
  end
  local found = pandoc.List {}
  for id, minutes in (order or ''):gmatch('(%S+) (%S+)') do
    local header = (by_id[id] or {})[1] or common.fail_at('slides', 'no slide has the id %s', id)
    header.attributes.minutes = minutes
    found:extend(by_id[id])
  end
  return order and found or blocks
end

return assemble
