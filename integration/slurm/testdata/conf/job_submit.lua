-- A site's policy, which talks to who submits.

function slurm_job_submit(job, partitions, uid)
	if job.name == "praised" then
		slurm.log_user("grüße \"und\" Dank\nfor a job with a name")
	elseif job.name == "refused" then
		slurm.log_user("no job of this name, see https://example.org/names")
		return slurm.ERROR
	end
	return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
	return slurm.SUCCESS
end
