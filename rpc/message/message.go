// Package message declares every message of Slurm's RPC that this project uses.
// Each subject, such as nodes, has a file with its requests, its answers, and
// the walk of its record. A walk is a function that encodes and decodes a
// record in all protocol versions, which package codec lists.
//
// The names of fields in the walks are Slurm's own, so that a test can compare
// each walk with the tables of the protocol. A new field needs one line in a
// walk and one in package model.
//
// On a connection, a message consists of its length (32 bits, not counted in
// the length), a Header, a Credential and a body. Encode and ParseFrame handle
// this structure. Packages rpc/client and rpc/server handle connections and the
// order of messages.
package message

import "schedrestd/rpc/codec"

// Body is the content of a message, without its header.
type Body interface {
	Walk(c *codec.Codec)
}

// Type is the number of a message type. Each message type has the same number
// in all releases.
type Type uint16

// Messages of the controller.
const (
	RequestPing               Type = 1008 // no body; answered by a ResponseRC
	RequestBuildInfo          Type = 2001
	ResponseBuildInfo         Type = 2002
	RequestPartitionInfo      Type = 2009
	ResponsePartitionInfo     Type = 2010
	RequestJobInfo            Type = 2003
	ResponseJobInfo           Type = 2004
	RequestNodeInfo           Type = 2007
	ResponseNodeInfo          Type = 2008
	RequestConfigFiles        Type = 2015
	ResponseConfigFiles       Type = 2016
	RequestJobInfoSingle      Type = 2021
	RequestNodeInfoSingle     Type = 2040
	RequestBatchScript        Type = 2051 // a JobInfoSingleRequest
	ResponseBatchScript       Type = 2052
	RequestUpdateJob          Type = 3001 // answered by an RC, or by ResponseJobArrayErrors
	RequestSubmitBatchJob     Type = 4003
	ResponseSubmitBatchJob    Type = 4004
	RequestAllocation         Type = 4001
	ResponseAllocation        Type = 4002
	RequestEstimate           Type = 4012 // a SubmitRequest that submits nothing (REQUEST_JOB_WILL_RUN)
	ResponseEstimate          Type = 4013
	RequestAllocationInfo     Type = 4014
	ResponseAllocationInfo    Type = 4015
	RequestHetAllocation      Type = 4025
	ResponseHetAllocation     Type = 4026
	RequestHetAllocationInfo  Type = 4027 // answered like RequestHetAllocation
	RequestSubmitHetJob       Type = 4028 // answered like RequestSubmitBatchJob
	RequestCompleteAllocation Type = 5017 // answered by a ResponseRC
	RequestJobReady           Type = 4019
	ResponseJobReady          Type = 4020 // an RC whose Code is a set of bits
	RequestReconfigure        Type = 1003 // no body; this and the next eight are answered by a ResponseRC
	RequestUpdateNode         Type = 3002
	RequestCreatePartition    Type = 3003
	RequestDeletePartition    Type = 3004
	RequestUpdatePartition    Type = 3005
	RequestUpdateReservation  Type = 3009
	RequestDeleteReservation  Type = 3008
	RequestDeleteNode         Type = 3014
	RequestCreateNode         Type = 3015
	RequestCreateReservation  Type = 3006
	ResponseReservationName   Type = 3007
	RequestResourceLayout     Type = 4007 // this and its answer exist from protocol 44 on
	ResponseResourceLayout    Type = 4008
	RequestJobRequeue         Type = 5023 // answered like RequestUpdateJob
	RequestKillJob            Type = 5032
	RequestAuthToken          Type = 5039
	ResponseAuthToken         Type = 5040
	ResponseJobArrayErrors    Type = 5034
	ResponseRC                Type = 8001
	ResponseRCMessage         Type = 8002
	RequestLicenseInfo        Type = 1021
	ResponseLicenseInfo       Type = 1022
	RequestShares             Type = 2022
	ResponseShares            Type = 2023
	RequestLimits             Type = 2043 // REQUEST_ASSOC_MGR_INFO
	ResponseLimits            Type = 2044
	RequestReservationInfo    Type = 2024
	ResponseReservationInfo   Type = 2025
	RequestPriorities         Type = 2026 // the layout is known from protocol 39 on
	ResponsePriorities        Type = 2027
	RequestStats              Type = 2035
	ResponseStats             Type = 2036
	RequestJobUserInfo        Type = 2039 // answered by a ResponseJobInfo
	RequestJobState           Type = 2057 // this and its answer exist from protocol 40 on
	ResponseJobState          Type = 2058
	RequestKillJobs           Type = 5041 // this and its answer exist from protocol 40 on
	ResponseKillJobs          Type = 5042
	ResponseReroute           Type = 8003
	RequestPersistInit        Type = 6500
	AccountingRC              Type = 1433
	AccountingFini            Type = 1401
	AccountingGetAccounts     Type = 1409
	AccountingGotAccounts     Type = 1416
	AccountingGetAssocs       Type = 1410
	AccountingGotAssocs       Type = 1417
	AccountingGetClusters     Type = 1412
	AccountingGotClusters     Type = 1419
	AccountingGetUsers        Type = 1415
	AccountingGotUsers        Type = 1423
	AccountingGetJobs         Type = 1444
	AccountingGotJobs         Type = 1421
	AccountingGetQOS          Type = 1448
	AccountingGotQOS          Type = 1449
	AccountingGetWCKeys       Type = 1453
	AccountingGotWCKeys       Type = 1454
	AccountingGetTRES         Type = 1486
	AccountingGotTRES         Type = 1487
	AccountingAddAccounts     Type = 1402 // this and the next four are answered by an AccountingRC
	AccountingAddCoords       Type = 1403
	AccountingAddAssocs       Type = 1404
	AccountingAddClusters     Type = 1405
	AccountingAddUsers        Type = 1406
	AccountingAddQOS          Type = 1447 // answered by an AccountingRC
	AccountingAddWCKeys       Type = 1452
	AccountingAddAccountsTo   Type = 1501 // this and the next are answered by an AccountingRC, and exist from protocol 40 on
	AccountingAddUsersTo      Type = 1502
	AccountingModifyAccounts  Type = 1428 // all Modify and Remove messages are answered by an AccountingGotList
	AccountingModifyAssocs    Type = 1429
	AccountingModifyUsers     Type = 1431
	AccountingModifyQOS       Type = 1451
	AccountingModifyJobs      Type = 1476
	AccountingRemoveAccounts  Type = 1435
	AccountingRemoveCoords    Type = 1436
	AccountingRemoveAssocs    Type = 1437
	AccountingRemoveClusters  Type = 1438
	AccountingRemoveUsers     Type = 1439
	AccountingRemoveQOS       Type = 1450
	AccountingRemoveWCKeys    Type = 1455
	AccountingGotList         Type = 1422
	AccountingGetConf         Type = 1466 // no body from protocol 45 on
	AccountingGotConf         Type = 1508
	AccountingGetStats        Type = 1489
	AccountingGotStats        Type = 1490
	AccountingRecordJobs      Type = 30001 // a message of this project, from schedctld to scheddbd
	AccountingRecordRuns      Type = 30003 // a message of this project, from schedctld to scheddbd: jobs and their runs
	AccountingGetJobPage      Type = 30002 // a message of this project, to scheddbd; answered by an AccountingGotJobs
)

// Empty is the body of a message that consists only of its type.
type Empty struct{}

// Walk does nothing.
func (Empty) Walk(*codec.Codec) {}
