import type { LogEntry } from '../../../../../src/contract/log-entry.ts'
import { part, query, useGet } from '../../../api/index.ts'
import { Loaded } from '../../../ui/feedback.tsx'
import { Json } from '../../../ui/json.tsx'
import { TraceLink } from '../../../ui/links.tsx'
import { useLocation } from 'preact-iso'

type EntryProps = { scope: string; seq: number; onClose: () => void }

/** All fields of an entry, and ways on from it. The list keeps only its line. */
export function Entry({ scope, seq, onClose }: EntryProps) {
  const { path } = useLocation()
  const data = useGet<{ items: LogEntry[] }>(`/v1/scopes/${part(scope)}/log${query({ after: seq - 1, limit: 1 })}`)
  return (
    <section class="card" aria-label={`Entry ${seq}`}>
      <div class="heading">
        <h2>Entry {seq}</h2>
        <div class="actions">
          <a href={`${path}?tab=context&at=${seq}`}>Context after it</a>
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </div>
      <Loaded data={data}>
        {({ items: [entry] }) =>
          entry === undefined ? (
            <p>The entry is no longer kept.</p>
          ) : (
            <>
              <p>
                <TraceLink id={entry.trace_id} span={entry.span_id} text="Open its trace" />
              </p>
              <Json value={entry} label={`Entry ${seq}`} />
            </>
          )
        }
      </Loaded>
    </section>
  )
}
