import { hasRole, post } from '../../api/index.ts'
import { submitted, useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { NeedsRole } from '../../ui/page.tsx'

type DecideProps = {
  /** The path of the deal or contract in the API. */
  path: string
  /** The actions that its state allows. */
  verbs: readonly string[]
  onDone: () => void
}

/** The actions on a deal or contract, with a reason for the record. */
export function Decide({ path, verbs, onDone }: DecideProps) {
  const { run, busy, problem } = useAction(({ verb, ...body }: { verb: string; reason?: string; traces?: string[] }) =>
    post(`${path}/${verb}`, body),
  )
  if (verbs.length === 0) return null
  if (!hasRole('operator')) return <NeedsRole role="operator" what="To decide" />
  const submit = async (event: SubmitEvent) => {
    const of = submitted(event)
    const verb = (event.submitter as HTMLButtonElement).value
    const reason = of('reason')
    const traces = of('traces').match(/\S+/g) ?? []
    const answer = await run({ verb, ...(reason !== '' && { reason }), ...(verb === 'dispute' && { traces }) })
    if (answer.ok) onDone()
  }
  return (
    <>
      <form class="filters" onSubmit={(event) => void submit(event)}>
        <label class="inline">
          Reason <input name="reason" maxLength={500} autocomplete="off" />
        </label>
        {verbs.includes('dispute') && (
          <label class="inline">
            Traces that show a fault <input name="traces" placeholder="ids, for a dispute" autocomplete="off" />
          </label>
        )}
        {verbs.map((verb) => (
          <button key={verb} value={verb} disabled={busy}>
            {verb.charAt(0).toUpperCase() + verb.slice(1)}
          </button>
        ))}
      </form>
      <ErrorBox problem={problem} />
    </>
  )
}
