import type { ModelWait } from '../../../../src/contract/scope.ts'
import { hasRole, post } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox } from '../../ui/feedback.tsx'
import { notify } from '../../ui/notices.tsx'
import { counted } from '../../ui/numbers.ts'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'

type AwayProps = { waits: ModelWait; path: string; onAsked: () => void }

/** Why the scope waits for the model, when it asks again, and a way to ask at once. */
export function ModelAway({ waits: { since, until, tries, detail }, path, onAsked }: AwayProps) {
  const ask = useAction(() => post<{ asked: boolean }>(`${path}/ask-model`, {}))
  const mayAsk = hasRole('operator')
  const now = async () => {
    const answer = await ask.run(undefined)
    if (!answer.ok) return
    notify(answer.value.asked ? 'The scope asks the model now.' : 'The scope did not wait for the model any more.')
    onAsked()
  }
  return (
    <div class="wait">
      <p>
        The model provider is unavailable since <Time at={since} />, {counted(tries, 'turn')} failed: <Text text={detail} />
      </p>
      <p class="actions">
        <span>
          It asks again <Time at={until} />.
        </span>
        <button
          type="button"
          disabled={!mayAsk || ask.busy}
          title={mayAsk ? '' : 'This needs the role operator.'}
          onClick={() => void now()}
        >
          Ask now
        </button>
      </p>
      {ask.problem && <ErrorBox problem={ask.problem} />}
    </div>
  )
}
