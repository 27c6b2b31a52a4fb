import type { Deal } from '../../../../src/contract/market/deal.ts'
import { hasRole, part, request, useGet } from '../../api/index.ts'
import { useAction } from '../../api/use-action.ts'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { Section } from '../../ui/page.tsx'

type Chained = { settings: { reflexes: { id: string }[] } }

/** The buyer's next step: the chains of the scopes of the licence name the reflex. */
export function PutToUse({ deal: { artifact, delivery } }: { deal: Deal }) {
  const [, id] = /^reflex:([^@]+)@/.exec(artifact) ?? []
  if (id === undefined || delivery?.kind !== 'licence' || !delivery.in_use) return null
  return (
    <Section title="Use">
      {(delivery.scopes ?? []).map((scope) =>
        scope.includes('*') ? (
          <p key={scope}>Scopes that match {scope} run it once their setting reflexes names it.</p>
        ) : (
          <Scope key={scope} scope={scope} id={id} />
        ),
      )}
    </Section>
  )
}

function Scope({ scope, id }: { scope: string; id: string }) {
  const path = `/v1/scopes/${part(scope)}`
  const data = useGet<Chained>(path)
  const { run, busy, problem } = useAction((reflexes: object[]) => request('PATCH', path, { body: { reflexes } }))
  const add = async (chain: object[]) => {
    const answer = await run([...chain, { id }])
    if (answer.ok) data.reload()
  }
  return (
    <Loaded data={data}>
      {({ settings: { reflexes } }) => (
        <>
          <p>
            {reflexes.some((one) => one.id === id) ? (
              <>
                The chain of <ScopeLink scope={scope} /> names it. It is compared with the turns there first, and acts once it is proven.
              </>
            ) : (
              <>
                The chain of <ScopeLink scope={scope} /> does not name it yet.{' '}
                {hasRole('operator') && (
                  <button type="button" disabled={busy} onClick={() => void add(reflexes)}>
                    Run it there
                  </button>
                )}
              </>
            )}
          </p>
          {problem && <ErrorBox problem={problem} />}
        </>
      )}
    </Loaded>
  )
}
