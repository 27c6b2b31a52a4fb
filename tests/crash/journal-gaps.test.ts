import { comeToOneEnd, overHttp } from '../support/journal-gaps.ts'

comeToOneEnd({ 'asked for over HTTP': overHttp })
