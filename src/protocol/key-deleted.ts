/** How a socket ends whose key was deleted: opening it again with the same key would not help. */
export const keyDeleted = { code: 4401, reason: 'the key that opened this socket was deleted' } as const
