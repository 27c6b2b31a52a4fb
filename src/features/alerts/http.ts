import { withIso } from '../../base/time.ts'
import { resource, serve } from '../../http/describe/operation.ts'
import { listed } from '../../http/describe/paging.ts'
import { storeOf } from '../../store/store.ts'
import { list } from './resources.ts'
import { listAlerts } from './store.ts'

export const alertRoutes = resource().openapiRoutes([
  serve(list, async ({ env, var: { principal } }, { query: { cursor: before, ...asked } }) => {
    const found = await listAlerts(storeOf(env), { ...asked, before, patterns: principal.scopes })
    return listed(found, {
      present: ({ reach: _reach, ...alert }) => withIso(alert, ['at']),
      cursor: ({ at, id }) => ({ at, id }),
    })
  }),
])
