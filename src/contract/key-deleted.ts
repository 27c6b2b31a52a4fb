/** How a socket ends whose key was deleted: opening it again with the same key would not help. */
export const keyDeleted = { code: 4401, reason: 'the key that opened this socket was deleted' } as const

/** The id under which the deployment's admin key acts; it has no row in D1. */
export const ADMIN_KEY_ID = 'admin'
