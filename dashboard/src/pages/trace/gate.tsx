import { Status } from '../../ui/status.tsx'
import { Text } from '../../ui/text.tsx'

type Check = { check: string; passed: boolean; detail: string }
type Stage = { stage: string; status: string; checks?: Check[] }
export type Decided = { verdict?: string; stages?: Stage[] }

/** The stages of a gate in their order, each with what it checked. */
export function Gate({ decision: { stages = [] } }: { decision: Decided }) {
  return (
    <div>
      <h3>Stages</h3>
      <ol>
        {stages.map(({ stage, status, checks = [] }) => (
          <li key={stage}>
            {stage}: <Status status={status} />
            {checks.length > 0 && (
              <ul>
                {checks.map(({ check, passed, detail }) => (
                  <li key={check + detail} class={passed ? '' : 'bad'}>
                    {passed ? '' : 'Failed: '}
                    <Text text={`${check}: ${detail}`} most={500} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ol>
    </div>
  )
}
