import { useSignal } from '@preact/signals'
import type { EventReceipt, EventRecord } from '../../../../src/contract/event-record.ts'
import { failed } from '../../api/problem.ts'
import { hasRole, part, post, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { NeedsRole } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Fate } from './events.tsx'
import { fieldOf, ownFields } from './words.ts'

type Receipt = Pick<EventReceipt, 'id' | 'trace_id' | 'status'>
const ASK_MS = 500
const EXAMPLE = { connection_id: 'dashboard', content: 'Hello' }

/** Sends an event of a recent type, and shows its receipt and then its outcome. */
export function SendEvent({ scope, onClose }: { scope: string; onClose: () => void }) {
  const path = `/v1/scopes/${part(scope)}/events`
  const recent = useGet<{ items: EventRecord[] }>(`${path}?limit=50`)
  const receipt = useSignal<Receipt | null>(null)
  const send = useAction(async ({ type, fields }: { type: string; fields: string }) => {
    const own = parsed(fields)
    if (!own) return failed(0, 'The fields are not a JSON object', 'Write them as {"name": "value"}.')
    return post<{ events: Receipt[] }>(path, { ...own, type })
  })
  const samples = new Map((recent.value?.items ?? []).toReversed().map(({ event }): [string, EventRecord['event']] => [event.type, event]))
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    receipt.value = null
    const answer = await send.run({ type: fieldOf(event, 'type'), fields: fieldOf(event, 'fields') })
    if (answer.ok) receipt.value = answer.value.events[0] ?? null
  }
  /** The fields of the last event of a type are a start. */
  const prefill = ({ value, form }: HTMLInputElement) => {
    const sample = samples.get(value)
    const fields = form?.elements.namedItem('fields')
    if (sample && fields instanceof HTMLTextAreaElement) fields.value = JSON.stringify(ownFields(sample), null, 2)
  }
  return (
    <Dialog title="Send an event" onClose={onClose}>
      {hasRole('publisher') ? (
        <form class="stack" onSubmit={(event) => void submit(event)}>
          <label>
            Type
            <input
              name="type"
              required
              maxLength={128}
              list="recent-types"
              defaultValue="ws.message"
              onChange={({ currentTarget }) => prefill(currentTarget)}
            />
            <datalist id="recent-types">
              {Array.from(samples.keys(), (type) => (
                <option key={type} value={type} />
              ))}
            </datalist>
          </label>
          <label>
            Its fields, as JSON
            <textarea name="fields" rows={8} spellcheck={false} defaultValue={JSON.stringify(EXAMPLE, null, 2)} />
          </label>
          <ErrorBox problem={send.problem} />
          <div>
            <button class="primary" disabled={send.busy}>
              Send
            </button>
          </div>
          {receipt.value && <Sent key={receipt.value.id} path={path} receipt={receipt.value} />}
        </form>
      ) : (
        <NeedsRole {...{ role: 'publisher', what: 'Sending events' }} />
      )}
    </Dialog>
  )
}

function Sent({ path, receipt: { id, trace_id, status } }: { path: string; receipt: Receipt }) {
  const isEnded = useSignal(false)
  const { value: record, problem } = useGet<EventRecord>(`${path}/${part(id)}`, isEnded.value ? {} : { every_ms: ASK_MS })
  isEnded.value = record !== undefined && record.outcome !== null
  return (
    <div class="card" role="status">
      <p>
        Receipt: {status}, id <code>{id}</code>. <TraceLink id={trace_id} text="Trace" />
      </p>
      <ErrorBox problem={problem} />
      {record && (
        <p>
          <Status status={record.status} /> <Fate record={record} />
        </p>
      )}
    </div>
  )
}

function parsed(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text.trim() === '' ? '{}' : text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
