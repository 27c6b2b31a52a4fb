/** A field of the form: its name in the event, what people read, and its first value. */
type Field = { name: string; label: string; value: string }
/** `event`: what each event has beside the fields. */
type Form = { title: string; scope: string; event: Readonly<Record<string, string>>; fields: readonly Field[] }

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

/** A page that sends one event and shows what became of it. Change it, or build your own. */
function page({ title, scope, event, fields }: Form): Response {
  const inputs = fields.map(
    ({ name, label, value }) => `<label>${escape(label)}<textarea name="${escape(name)}">${escape(value)}</textarea></label>`,
  )
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
  body { max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
  label { display: grid; margin: 0 0 0.75rem; }
  input, textarea, button { font: inherit; padding: 0.4rem; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
</style>
<h1>${escape(title)}</h1>
<form data-scope="${escape(scope)}" data-event="${escape(JSON.stringify(event))}">
<label>Key <input name="key" type="password" autocomplete="off" required placeholder="npm run dev prints one"></label>
${inputs.join('\n')}
<button>Send</button>
</form>
<p role="status"></p>
<pre></pre>
<p><a href="/">Dashboard</a> · <a href="/docs/">Documentation</a></p>
<script type="module" src="/try.js"></script>
</html>
`
  return new Response(html, { headers: { 'Content-Type': 'text/html; charset=utf-8', 'Content-Security-Policy': POLICY } })
}

const POLICY = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'"

/** The page at `/try` and its script; undefined for other addresses. */
export function tryPage(request: Request, form: Form): Response | undefined {
  const { pathname } = new URL(request.url)
  if (pathname === '/try') return page(form)
  return pathname === '/try.js' ? script() : undefined
}

/** The script of the page sends the event, waits for its outcome, and shows it. */
const script = (): Response => new Response(SCRIPT, { headers: { 'Content-Type': 'text/javascript; charset=utf-8' } })

const SCRIPT = `const form = document.querySelector('form')
const status = document.querySelector('[role=status]')
const detail = document.querySelector('pre')

form.addEventListener('submit', async (submitted) => {
  submitted.preventDefault()
  const { key, ...fields } = Object.fromEntries(new FormData(form))
  status.textContent = 'Waiting …'
  detail.textContent = ''
  try {
    const response = await fetch('/v1/scopes/' + encodeURIComponent(form.dataset.scope) + '/events?wait=outcome', {
      method: 'POST',
      headers: { authorization: 'Bearer ' + key, 'content-type': 'application/json' },
      body: JSON.stringify({ ...JSON.parse(form.dataset.event), ...fields }),
    })
    const answer = await response.json()
    if (!response.ok) throw new Error(answer.detail ?? answer.title)
    const [event] = answer.events
    const { by, idle, why, result } = event.outcome ?? {}
    status.textContent = result?.text ?? event.status + (by ? ', by ' + by : '') + (idle ? ', which did nothing' + (why ? ': ' + why : '') : '')
    detail.textContent = JSON.stringify(event, null, 2)
  } catch (error) {
    status.textContent = error.message
  }
})
`
