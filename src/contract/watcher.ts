/** The name of a connection that only watches: nobody waits for replies there. */
export type Watcher = 'reflex-dashboard'
export const WATCHER: Watcher = 'reflex-dashboard'
