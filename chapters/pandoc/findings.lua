-- ::: {.finding guard="NAME"}: what the reference run shows. Its guard (chapters/guards.toml, judged by the exporter) stops the
-- build where the reference run says otherwise; where the reader's own data do, a note says so.
-- ::: {.finding trial="why no experiment asks it"}: what a run shows that is printed below it. Nothing judges it.

local common = require 'common'

local findings = {}

local function note(guard)
  local words = pandoc.List { pandoc.Strong { pandoc.Str 'On your machine it is otherwise:' }, pandoc.Space() }
  local blocks = pandoc.read(guard.otherwise, 'markdown').blocks
  blocks[1].content = words .. blocks[1].content
  blocks[#blocks].content:extend(pandoc.Inlines ' What follows, up to the next heading, describes the reference run.')
  local title = ('%s; %s'):format(guard.here_why, guard.here_numbers)
  return pandoc.Div(blocks, pandoc.Attr('', { 'otherwise' }, { title = title }))
end

local function of_a_trial(div, why)
  if why == '' then common.fail('trial="', 'trial= without the reason why no experiment asks it') end
  if div.attributes.guard then common.fail('trial="' .. why, 'a finding has guard= or trial=, not both') end
  div.attributes.trial = nil
  return div
end

local function guarded(div)
  if div.attributes.trial then return of_a_trial(div, div.attributes.trial) end
  local name = div.attributes.guard
  local needle = name and 'guard="' .. name .. '"' or '.finding'
  local guard = name and common.data('guards')[name]
  if not name then
    common.fail('{.finding}', 'a finding without its guard: {.finding guard="name"}, or trial="the reason for none"')
  elseif not guard then
    common.fail(needle, 'unknown guard "%s" (not in chapters/guards.toml)', name)
  elseif guard.on_reference == 'disagrees' then
    common.fail(needle, 'the finding "%s" is not what the reference run shows: %s (wanted: %s), %s; %s', name,
      guard.reference, guard.wanted, guard.why, guard.numbers)
  elseif guard.on_own == 'disagrees' then
    div.content:insert(note(guard))
  end
  div.attributes.guard = nil
  return div
end

function findings.apply(doc) return doc:walk { Div = common.by_class { finding = guarded } } end

return findings
