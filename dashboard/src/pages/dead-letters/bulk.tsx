import { useSignal } from '@preact/signals'
import { post, type Answer, type ApiProblem } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { Dialog, DialogActions } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { discard, retry, type ListedDeadLetter } from './calls.ts'

export type DeadLetterFilter = Readonly<Record<string, string | undefined>>

type BulkProps = {
  letters: ListedDeadLetter[]
  all: ListedDeadLetter[]
  more: boolean
  filter: DeadLetterFilter
  onChoose: (ids: string[]) => void
  onDone: () => void
}
type Retried = { retried: number; failed: { id: string; reason: string }[] }
const MOST = 1000

/** Acts on the chosen letters, or retries all that the filter matches. */
export function Bulk({ letters, all, more, filter, onChoose, onDone }: BulkProps) {
  const asking = useSignal<'retry' | 'discard' | null>(null)
  const chosen = letters.length
  const retryAll = useAction(() => post<Retried>('/v1/dlq/retry', { ...given(filter), limit: MOST }))
  const runAll = async () => {
    const answer = await retryAll.run(undefined)
    if (!answer.ok) return
    notify(`${answer.value.retried} retried, ${answer.value.failed.length} could not be`)
    onDone()
  }
  return (
    <>
      <div class="actions">
        <label class="inline">
          <input
            type="checkbox"
            checked={chosen === all.length}
            onChange={({ currentTarget }) => onChoose(currentTarget.checked ? all.map(({ id }) => id) : [])}
          />
          All {all.length}
          {more ? '+' : ''} shown
        </label>
        <button type="button" disabled={chosen === 0} onClick={() => (asking.value = 'retry')}>
          Retry {chosen} …
        </button>
        <button type="button" class="danger" disabled={chosen === 0} onClick={() => (asking.value = 'discard')}>
          Discard {chosen} …
        </button>
        {more && (
          <button type="button" disabled={retryAll.busy} onClick={() => void runAll()}>
            Retry the newest {MOST} that match
          </button>
        )}
      </div>
      <ErrorBox problem={retryAll.problem} />
      {asking.value && (
        <Confirm
          verb={asking.value}
          letters={letters}
          onClose={() => (asking.value = null)}
          onDone={() => {
            asking.value = null
            onDone()
          }}
        />
      )}
    </>
  )
}

const given = ({ scope, type }: DeadLetterFilter) => ({ ...(scope && { scope }), ...(type && { type }) })

type ConfirmProps = { verb: 'retry' | 'discard'; letters: ListedDeadLetter[]; onClose: () => void; onDone: () => void }

function Confirm({ verb, letters, onClose, onDone }: ConfirmProps) {
  const done = useSignal(0)
  const problem = useSignal<ApiProblem | null>(null)
  const isBusy = useSignal(false)
  const run = async () => {
    isBusy.value = true
    for (const letter of letters.slice(done.value)) {
      const answer: Answer<unknown> = await (verb === 'retry' ? retry(letter) : discard(letter))
      if (!answer.ok && answer.problem.status !== 404) {
        problem.value = answer.problem
        break
      }
      done.value += 1
    }
    isBusy.value = false
    if (done.value < letters.length) return
    notify(`${done.value} ${verb === 'retry' ? 'retried' : 'discarded'}`)
    onDone()
  }
  return (
    <Dialog title={`${verb === 'retry' ? 'Retry' : 'Discard'} ${letters.length} dead letters?`} onClose={onClose}>
      <p>
        {verb === 'retry'
          ? 'Their events return to their scopes, with their attempts reset.'
          : 'They leave this list. Their events stay in their scopes, as dead letters.'}
      </p>
      <ErrorBox problem={problem.value} />
      <p role="status">{isBusy.value && `${done.value} of ${letters.length}`}</p>
      <DialogActions
        verb={verb === 'retry' ? 'Retry' : 'Discard'}
        dangerous={verb !== 'retry'}
        isBusy={isBusy}
        onClose={onClose}
        onAct={() => void run()}
      />
    </Dialog>
  )
}
