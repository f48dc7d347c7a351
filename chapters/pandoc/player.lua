-- Players: ``` {.player recording="09-epoll.slow" #fig:player-epoll caption="What is seen."}, beside="07-poll.slow" for two on one
-- scale; and ``` {.front}, the six servers of the first page. Both are drawn already (quest/book/player): here they get their
-- place, number and caption.

local common = require 'common'

local player = {}

local function gather(block)
  local attributes, front = block.attributes, block.classes:includes 'front'
  local name = front and 'front' or attributes.recording
  if not name then return common.fail('{.player', 'a player without recording="NN-slug.SCENE"') or {} end
  if attributes.beside then name = attributes.beside .. '+' .. name end
  local caption = attributes.caption and common.inlines(attributes.caption) or {}
  return pandoc.Div({ pandoc.Plain(caption) }, pandoc.Attr(block.identifier, { 'recorded' }, { name = name }))
end

-- Before code.bind: what is a player is no listing.
function player.gather(doc)
  return doc:walk { CodeBlock = common.by_class { player = gather, front = gather } }
end

local function draw(div)
  local name = div.attributes.name
  local place = common.weave .. '/players/' .. name
  local html = common.depend(place .. '.html')
  local reason = not html and common.depend(place .. '.skipped')
  if not html and not reason then
    local message = 'no recording %s (benchmarks/recordings; pairs: quest/book/player/__main__.py)'
    return common.fail(name:match '[^+]*$', message, name) or {}
  end
  html = html or ('<div class="not-drawn">Not drawn here: %s</div>'):format(common.escape(common.lines(reason)[1]))
  if common.form == 'slides' then
    local _, count = html:gsub('<i class="dot"', '')
    return common.raw((html:gsub('class="player', 'class="slide player', 1)) .. common.moments(count))
  end
  if name == 'front' then return common.raw(html) end
  local id = div.identifier ~= '' and (' id="%s"'):format(common.html_id(div.identifier)) or ''
  local caption, number = div.content[1].content, common.caption_number(div.identifier)
  if number then caption = { pandoc.Span(number, pandoc.Attr('', { 'number' })), pandoc.Space() } .. caption end
  local page = ('player-%s.html'):format((name:match('[^+]*$'):gsub('%.slow$', '')))
  return {
    common.raw(('<figure class="figure recorded"%s>'):format(id) .. html .. '<figcaption>'),
    pandoc.Plain(caption),
    common.raw(('<span class="origin">A recording, call by call: <a href="%s">on a page of its own</a>.</span></figcaption>\n</figure>')
      :format(page)),
  }
end

-- What a page is made with: its template asks for it.
function player.draw(doc)
  local found = {}
  doc = doc:walk { Div = common.by_class { recorded = function(div)
    found[div.attributes.name == 'front' and 'front' or 'player'] = true
    return draw(div)
  end } }
  doc.meta['has-player'], doc.meta['has-front'] = found.player or nil, found.front or nil
  return doc
end

-- Where all chapters are in one file there are no pages of players; an EPUB has no scripts, and links in raw HTML
-- are not followed when it is cut into files.
function player.for_one_file(doc, is_epub)
  return doc:walk {
    RawBlock = function(block)
      local text = block.text
      if not text:find('class="player', 1, true) and not text:find('class="front', 1, true)
        and not text:find('href="player-', 1, true) then
        return nil
      end
      text = text:gsub('<a href="player%-[^"]*">(.-)</a>', '%1'):gsub('<span class="origin">A recording.-</span>', '')
      if is_epub then
        text = text:gsub('<script.-</script>', ''):gsub(' href="player%-[^"]*"', ''):gsub('<div class="foot">.-</div>', '')
      else
        text = text:gsub('href="player%-([^".]*)[^"]*"', 'href="#ch-%1"')
      end
      return common.raw(text)
    end,
  }
end

return player
