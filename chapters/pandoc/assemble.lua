-- Puts woven chapters together for the one-file book and the EPUB, and takes the answers out of
-- pages.

local common = require 'common'
local labels = require 'labels'

local assemble = { FRONT = 'About this book' }

-- All pages in order; the page of answers is the last.
function assemble.pages()
  local pages = pandoc.List(labels.load()):filter(function(row) return row.kind == 'page' end)
  return pages .. { { slug = 'answers', text = 'Answers to the exercises' } }
end

local function page_of(slug)
  return (assemble.pages():find_if(function(row) return row.slug == slug end))
end

-- Answers of a chapter, in order; wherever they stand.
local function answers_of(doc)
  local found = pandoc.List {}
  doc:walk {
    traverse = 'topdown',
    Div = function(div)
      if div.classes:includes('answer') then
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
      if div.classes:includes('answer') then
        local link = pandoc.Link('Answer', page .. '#' .. div.identifier)
        return pandoc.Div({ pandoc.Plain { link } }, pandoc.Attr('', { 'answer-link' }))
      end
    end,
  }
end

-- The blocks of the page of answers; links inside a chapter are seen from outside it, and each
-- answer has a way back.
function assemble.answers(chapters)
  local blocks = pandoc.List {}
  for _, chapter in ipairs(chapters) do
    local found, row, page = answers_of(chapter.doc), page_of(chapter.slug), chapter.slug .. '.html'
    if #found > 0 then
      local heading = (row.number and row.number .. '  ' or '') .. row.text
      blocks:insert(pandoc.Header(2, heading, pandoc.Attr('answers-' .. chapter.slug)))
    end
    for _, answer in ipairs(found) do
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
  return #blocks > 0 and blocks or pandoc.List { pandoc.Para('No chapter has exercises yet.') }
end

-- Headings repeat from chapter to chapter ("The code"), so their ids take the slug in front; labels
-- are unique already.
local function rename(chapter)
  local renamed = {}
  chapter.doc = chapter.doc:walk {
    Header = function(header)
      if not header.identifier:match('^sec%-') then
        local id = chapter.slug .. '--' .. header.identifier
        renamed[header.identifier] = id
        header.identifier = id
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
  local page = page_of(slug)
  local number = page.number and pandoc.Span(page.number, pandoc.Attr('', { 'number' }))
  local content = pandoc.List(number and { number, pandoc.Space() } or {})
  -- The front page bears the name of the book, which the book already has on its cover.
  content:insert(pandoc.Str(slug == 'index' and assemble.FRONT or page.text))
  return pandoc.Header(1, content, pandoc.Attr('ch-' .. slug))
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

-- All chapters put into this document, the answers at its end.
function assemble.book(doc, chapters)
  local answers = { slug = 'answers', doc = pandoc.Pandoc(assemble.answers(chapters)) }
  local renamed = { answers = rename(answers) }
  for _, chapter in ipairs(chapters) do
    chapter.doc = assemble.without_answers(chapter.doc, '')
    renamed[chapter.slug] = rename(chapter)
  end
  for _, part in ipairs(chapters .. { answers }) do
    doc.blocks:insert(chapter_title(part.slug))
    doc.blocks:extend(relink(part.doc, part.slug, renamed).blocks)
  end
  refuse_double_ids(doc)
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
-- slides/tracks.py prints), these slides in this order, for so long; without it all.
function assemble.slides(blocks, order)
  if not order then
    return blocks
  end
  local by_id, slide = {}, pandoc.List {}
  for _, block in ipairs(blocks) do
    if block.t == 'Header' and block.level <= 2 then
      slide = pandoc.List {}
      by_id[block.identifier] = slide
    end
    slide:insert(block)
  end
  local found = pandoc.List {}
  for id, minutes in order:gmatch('(%S+) (%S+)') do
    local header = (by_id[id] or {})[1] or common.fail_at('slides', 'no slide has the id ' .. id)
    header.attributes.minutes = minutes
    header.attributes['data-timing'] = ('%.0f'):format(minutes * 60)
    found:extend(by_id[id])
  end
  return found
end

return assemble
