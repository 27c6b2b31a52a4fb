import { sync } from '../operations/feed.ts'
import { readSkillFeed } from '../store/skill-feed.ts'
import { storeOf } from '../../../store/store.ts'
import { resource } from '../../../http/describe/describe.ts'
import { serve } from '../../../http/describe/operation.ts'

export const syncRoutes = resource().openapiRoutes([
  serve(sync, (c, { query: { project, since } }) => {
    const { key_id, scopes: key_scopes } = c.var.principal
    return readSkillFeed(storeOf(c.env), { since, project, key_id, key_scopes })
  }),
])
