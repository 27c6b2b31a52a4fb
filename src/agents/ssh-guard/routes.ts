import { resource } from '../../http/describe/describe.ts'
import { blockRoutes } from './routes-blocks.ts'
import { incidentRoutes } from './routes-incidents.ts'

export const sshGuardRoutes = resource().route('/', incidentRoutes).route('/', blockRoutes)
