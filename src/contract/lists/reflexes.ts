import type { z } from 'zod'
import type { ItemList } from '../shown.ts'
import type { reflexItem } from '../reflex.ts'

/** Stands in the description of a learned reflex, after its title. */
export const LEARNED_BY = '. Learned by '

/** The title of a learned reflex, which begins its description; of any other one, its id. */
export function reflexTitle({ id, description }: { id: string; description: string }): string {
  const end = id.startsWith('learned.') ? description.indexOf(LEARNED_BY) : -1
  return end > 0 ? description.slice(0, end) : id
}

export const reflexes = {
  at: 'get /v1/reflexes',
  key: 'id',
  columns: [
    { title: 'Reflex', of: reflexTitle, to: ({ id }) => `/reflexes/${encodeURIComponent(id)}`, only: 'page' },
    { title: 'Id', of: ({ id }) => id, only: 'terminal' },
    { title: 'Version', of: ({ version }) => version, kind: 'count' },
    {
      title: 'State',
      of: ({ state, idle, acts, version }) =>
        idle ? `${state}, does not act` : acts === null || acts === version ? state : `${state}, version ${acts} acts`,
      colour: ({ idle, acts }) => (idle ? 'yellow' : acts === null ? 'dim' : 'green'),
    },
    { title: 'Owner', of: ({ owner }) => owner, width: 10 },
    { title: 'Description', of: ({ description }) => description },
    { title: 'Written', of: ({ created_at }) => created_at, kind: 'time', only: 'page' },
  ],
} as const satisfies ItemList<z.infer<typeof reflexItem>>
