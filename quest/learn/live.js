/* Put into the pages of the book by `make read`: what is done of this chapter, and a new page when
   the book has changed. Without that server it is not there. */
'use strict';
(() => {
  const slug = location.pathname.split('/').pop().replace(/\.html$/, '')
  const bar = document.createElement('details')
  bar.setAttribute('aria-label', 'Your path through this chapter')
  bar.style.cssText = 'position:fixed;right:1rem;bottom:1rem;max-width:17rem;padding:.4rem .8rem;border:1px solid #8886;' +
    'border-radius:.4rem;background:Canvas;color:CanvasText;font:14px/1.5 system-ui,sans-serif;z-index:9'

  // Steps that are not seen from what was done. A drawing that is shown ticks the prediction, too.
  const saying = { predict: 'I have said what I expect', read: 'I have read it', exercise: 'I have done the exercises' }

  async function show() {
    const { steps, guesses, chapters } = await (await fetch(`/state/${slug}`)).json()
    document.dispatchEvent(new CustomEvent('guessed', { detail: guesses }))
    for (const [name, count] of Object.entries(chapters || {})) {
      const link = document.querySelector(`.toc a[href="${name}.html"]`)
      if (!link) continue
      const mark = link.parentElement.querySelector('small') || document.createElement('small')
      mark.textContent = ` ${count} done`
      link.after(mark)
    }
    const title = document.createElement('summary')
    title.textContent = `Your path: ${steps.filter(step => step.mark === 'x').length} of ${steps.length}`
    title.style.cursor = 'pointer'
    const inside = bar.contains(document.activeElement) // what had the focus is about to go
    bar.replaceChildren(title)
    for (const step of steps) {
      const line = document.createElement('div')
      if (step.mark === ' ' && saying[step.kind]) {
        const button = document.createElement('button')
        button.textContent = saying[step.kind]
        button.onclick = async () => {
          const asked = fetch(`/done/${slug}/${step.kind}`, { method: 'POST', headers: { 'X-Reader': '1' } })
          const { ok } = await asked.catch(() => ({ ok: false })) // make read has ended
          if (ok) await show()
          else button.textContent = 'It could not be kept: look at the terminal of make read'
        }
        line.append('☐ ', button)
      } else {
        line.textContent = `${{ x: '☑', '-': '⊟', ' ': '☐' }[step.mark]} ${step.kind}`
        if (step.mark === '-') line.append(' (skipped)')
        if (step.mark === ' ') {
          const code = document.createElement('code')
          code.textContent = step.command
          line.append(': ', code)
          if (step.stage) line.append(` Now ${step.stage}`)
        }
      }
      bar.append(line)
    }
    if (steps.length && !bar.isConnected) document.body.append(bar)
    if (inside) title.focus()
  }

  // Each stroke and each arrow key draws: what is sent is the drawing that rests.
  const resting = {}
  document.addEventListener('drawn', event => {
    const { number, y, shown } = event.detail
    clearTimeout(resting[number])
    resting[number] = setTimeout(() => fetch(`/guess/${slug}/${number}`, {
      method: 'POST', headers: { 'X-Reader': '1' }, body: JSON.stringify({ y, shown }),
    }).then(() => shown && show()).catch(() => { /* it is kept in the browser */ }), 500)
  })

  let version
  async function look() {
    try {
      const now = await (await fetch('/version')).json()
      if (version !== undefined && now !== version) location.reload()
      version = now
    } catch { /* the server is not there: it will be, or the reader is done */ }
    setTimeout(look, 1000)
  }
  const refresh = () => show().catch(() => { /* make read has ended */ })
  refresh()
  look()
  addEventListener('focus', refresh)
})()
