import type { Feature } from '../../feature.ts'
import { continueJobs, letterJobRoutes } from './http.ts'
import { forgetJobs, letterJobs } from './store.ts'

/** Dead letters by their errors, and jobs that retry or discard many of them on the server. */
export const deadLetters = {
  name: 'dead-letters',
  tables: { letterJobs },
  routes: () => [letterJobRoutes],
  sweeps: [{ name: 'jobs on dead letters', run: continueJobs }],
  forgets: [{ name: 'jobs on dead letters', kept: 'a year', forget: forgetJobs }],
} satisfies Feature
