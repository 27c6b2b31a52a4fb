import { part, post, request, type Answer } from '../../api/index.ts'
import type { DeadLetter } from './page.tsx'

export const retry = ({ id }: DeadLetter): Promise<Answer<object>> => post<object>(`/v1/dlq/${part(id)}/retry`)
export const discard = ({ id }: DeadLetter): Promise<Answer<undefined>> => request<undefined>('DELETE', `/v1/dlq/${part(id)}`)
