import { useSignal } from '@preact/signals'
import type { OfferedRule } from '../../../../src/contract/offered-rule.ts'
import { part, request, useGet } from '../../api/index.ts'
import { Confirm } from '../../ui/confirm.tsx'
import { count } from '../../ui/numbers.ts'
import { Text } from '../../ui/text.tsx'

/** The rules that follow from what people approved in the scope. A person accepts them, or not. */
export function Rules({ scope }: { scope: string }) {
  const path = `/v1/scopes/${part(scope)}`
  const offered = useGet<{ items: OfferedRule[] }>(`${path}/offered-rules`)
  const accepting = useSignal<OfferedRule | null>(null)
  const rules = offered.value?.items ?? []
  if (rules.length === 0) return null
  return (
    <>
      <h3>Rules that you may accept</h3>
      <ul>
        {rules.map((rule) => (
          <li key={rule.says}>
            <Text text={rule.says} most={600} /> Approved {count(rule.approved)} times: <Text text={rule.values.join(', ')} most={200} />{' '}
            <button type="button" onClick={() => (accepting.value = rule)}>
              Accept …
            </button>
          </li>
        ))}
      </ul>
      {accepting.value && (
        <Confirm
          title={`Accept a rule in ${scope}`}
          verb="Accept"
          act={() => request<object>('PATCH', path, { body: accepting.value?.patch })}
          done={() => 'The rule is in trusted_text.'}
          onClose={() => (accepting.value = null)}
          onDone={offered.reload}
        >
          <p>
            <Text text={accepting.value.says} most={600} /> Whoever writes such a text then says where the tool goes.
          </p>
        </Confirm>
      )}
    </>
  )
}
