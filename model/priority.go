package model

// JobPriority is the priority of a waiting job in one of its partitions, and in
// one of its qualities of service. The parts of the priority are products of a
// factor and its configured weight.
type JobPriority struct {
	StepID    StepID // of the job
	Account   string
	Partition string
	QOS       string
	UserID    uint32
	Direct    float64 // priority that an administrator has set; then there are no parts

	Age           float64
	Association   float64
	FairShare     float64
	JobSize       float64
	PartitionPart float64
	QOSPart       float64
	Site          uint32 // offset by NiceOffset
	Nice          uint32 // offset by NiceOffset; it is subtracted

	// These lists have an element for each trackable resource.
	TRES        []float64
	TRESNames   []string
	TRESWeights []float64
}

// Total returns the priority. It is at least 1, because 0 is the priority of a
// job that is held.
func (p *JobPriority) Total() float64 {
	if p.Direct > 0 {
		return p.Direct
	}
	sum := p.Age + p.Association + p.FairShare + p.JobSize + p.PartitionPart + p.QOSPart + float64(int64(p.Site)-int64(p.Nice))
	for _, part := range p.TRES {
		sum += part
	}
	return max(1, sum)
}
